// Package operatorcase has the commands of operator cases.
package operatorcase
