// Package mapping has the commands of mappings of ERP codes.
package mapping
