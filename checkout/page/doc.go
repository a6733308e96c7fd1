// Package page renders what a citizen sees on the hosted checkout page,
// /c/{session_id}, and in an integrator's frame, /embed/{session_id}, in French
// and English.
//
// It is pure: a [View] holds everything that a page says, already resolved by
// the caller, and [Renderer.Render] writes HTML. Templates, style and script
// are embedded; style and script have hashed names ([Renderer.Assets]) and are
// served as immutable. A page works without JavaScript; the script only shows
// changes sooner.
//
// # Forms
//
// Text browsers and scripts may rely on this:
//
//   - Each step has one forward form (POST), the page's first, and its first
//     button goes forward. It carries the fields of View.Hidden and [FieldLanguage].
//   - Offers are buttons of that form, or radios in the phone step, named
//     [FieldOffer] with the offer_id as value. The number is <input type=tel>
//     named [FieldPhone].
//   - Back, language and « Vérifier » are links. No form but the forward form
//     and the citizen's cancel is ever on a page; the latter posts to an
//     address that ends in /cancel and is absent while a collection is in
//     flight.
//   - [StateCash] is a step without a forward form: what goes forward is the
//     citizen, to a counter.
//   - A review with [ErrorOrderPaid] has no form at all: nothing is left to
//     confirm, and nothing that the citizen could undo.
//
// # In a frame
//
// A page with View.Embed is moved about by a script (embed.js): it sends forms
// and follows links of the page by fetch, with the client_secret in the
// Authorization header, and puts the answer in the page's place. Links to
// elsewhere open a window of their own. What the parent page is told goes as the
// DOM event "quittance:say" to the messaging script (View.Embed.Script), which
// alone speaks to the parent.
//
// # Live status
//
// The pages of [StateWaiting] and [StateCash] carry View.Version, an opaque version of the
// session that the caller makes up, and View.LiveURL, which the caller serves:
//
//   - GET with Accept: text/event-stream and Last-Event-ID: <version> answers
//     a stream: a comment line at least every 15 s, and one event with `id:
//     <version>` whenever the session's version differs from that of the
//     request, at once if it already does. Data and event name are ignored.
//   - GET with Accept: application/json answers {"version":"<version>"}.
//
// When the version differs from its own, the script loads the page again. No
// status travels to the script, so it has nothing to tell a parent window. The
// page must not be rendered from a state older than the version that LiveURL
// tells, or the browser loads it again every two seconds.
package page
