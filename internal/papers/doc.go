// Package papers makes receipts and notices, as PDF/A-2b (ISO 19005-2) and as pages, from
// what document says, and the certificates and payment advices of disbursement batches as PDF. The page of a paper is its accessible form; the PDFs have no
// structure for screen readers. A Maker gathers what a paper says about a session.
//
// The bytes of a PDF are a function of its arguments and of the version of this program: no
// clock, no random value, no order of a map. TestGolden pins them; a change of the layout or
// of a library changes them, and the file that somebody printed earlier stays valid, because
// its token does. DESIGN.md lists what the bytes of a receipt depend on.
//
// The fonts are Noto Sans Regular and Bold (SIL Open Font License 1.1, assets/OFL.txt), reduced by
// assets/subset: to Windows-1252, and to Latin with diacritics for papers with other characters.
// A character that the larger fonts lack, such as
// Arabic or an emoji, is printed as […], and a line at the end of the paper says so.
package papers
