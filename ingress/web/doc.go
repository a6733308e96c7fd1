// Package web has what all sets of pages share, except the checkout page itself: layout,
// language, security headers, refusal of posts from other sites, sealed cookies and
// forms. For the whole edge it measures requests (Measure), names their clients
// (ClientAddress) and limits those without a key (Gate).
//
// A set of pages is a [Site]. One of its pages is a template, its texts in a
// [language.Table], and a handler:
//
//   - templates/NAME.html defines "content". The layout around it is ours. The file
//     templates/parts.html may define what several pages share.
//   - The handler takes a [Visit], fills a struct that embeds [View], and calls
//     Visit.Write.
//
// Pages work without JavaScript: the policy lets no script run but the site's own, on the
// pages that have a use for it. They are not cached. Their Referrer-Policy is same-origin, so that browsers
// send the Origin of our own forms.
package web
