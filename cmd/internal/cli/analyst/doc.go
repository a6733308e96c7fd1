// Package analyst has the commands of analysts.
package analyst
