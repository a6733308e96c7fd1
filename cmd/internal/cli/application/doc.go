// Package application has the commands of applications and embed origins.
package application
