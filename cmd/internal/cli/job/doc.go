// Package job has the commands of jobs: what people ask for in bulk.
package job
