// Package erpcheck has the command that checks an ERP.
package erpcheck
