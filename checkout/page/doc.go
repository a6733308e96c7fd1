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
//   - Offers are buttons of that form, named [FieldOffer] with the offer_id as
//     value. The number is <input type=tel> named [FieldPhone].
//   - Back, language and « Vérifier » are links. No form but the forward form
//     and the citizen's cancel is ever on a page. The action of the latter ends
//     in /cancel. Its form (GET) leads to the question of [StateCancel], whose
//     only form (POST) cancels. It is absent while a collection is in flight.
//   - [StateCash] is a step without a forward form: the citizen goes to a counter.
//   - [StateWaiting] and [StateCash] load themselves again in a browser without
//     JavaScript (View.Refresh). They have no form that posts, which a reload would stop.
//   - A review with [ErrorOrderPaid] has no form at all: nothing is left to confirm or
//     to cancel.
//
// # In a frame
//
// In a page with View.Embed a script (embed.js) sends forms and follows links of the
// page by fetch, with the client_secret in the Authorization header, and replaces the
// page with the answer. Links to other sites open a new window. Messages for the parent
// page go as the DOM event "quittance:say" to the messaging script
// (View.Embed.Script), the only one that speaks to the parent.
//
// # Live status
//
// The pages of [StateWaiting] and [StateCash] have View.Version, the caller's opaque
// version of the session, and View.LiveURL, which the caller serves:
//
//   - GET with Accept: text/event-stream and Last-Event-ID: <version> answers
//     a stream: a comment line at least every 15 s, and one event with `id:
//     <version>` whenever the session's version differs from that of the
//     request, at once if it already does. Data and event name are ignored. `retry:
//     <milliseconds>` is the pause after which the script opens an ended stream again.
//   - GET with Accept: application/json answers {"version":"<version>"}.
//
// When the version differs from its own, the script loads the page again. The script
// gets no status, so it cannot pass one on to a parent window. The page must not be
// rendered from a state older than the version at LiveURL, or the browser loads it
// again every two seconds.
package page
