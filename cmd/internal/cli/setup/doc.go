// Package setup has the commands that migrate and seed an installation.
package setup
