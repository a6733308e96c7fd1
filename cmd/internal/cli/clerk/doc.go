// Package clerk has the commands of clerks and their devices.
package clerk
