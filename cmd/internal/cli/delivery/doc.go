// Package delivery has the commands of deliveries and their endpoints.
package delivery
