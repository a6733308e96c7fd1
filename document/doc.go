// Package document decides what a notice and a receipt say. The page and the PDF of a paper
// show the same rows in the same words: internal/papers renders a Receipt or a Notice as HTML
// and as PDF.
//
// The facts of a paper are in a Payment or a Slip. The package knows no domain: the domain
// whose money it is makes them, such as checkout/paper.
//
// A paper says nothing of the time at which it is made. A Receipt is a function of the
// payment, of whether it was reversed, recorded and erased, and of what the registry says
// of the agency.
//
// Everything in this package is pure and safe for concurrent use.
package document
