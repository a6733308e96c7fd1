// Package config has the command that checks settings before a role starts.
package config
