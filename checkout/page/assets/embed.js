// Navigation in a frame. This script sends our forms and follows our links by fetch, with
// the client_secret in the Authorization header and never in an address. The answer
// replaces the page. Messages for the parent page go to the messaging script as the DOM
// event "quittance:say".
(function () {
  "use strict";
  var doc = document, root = doc.documentElement, main = function () { return doc.getElementById("main"); };
  var secret = window.quittanceSecret, told = {}, asking = 0;

  function say(type, data) {
    doc.dispatchEvent(new CustomEvent("quittance:say", { detail: { type: type, data: data || {} } }));
  }
  function once(type, data) {
    if (!told[type]) say(told[type] = type, data);
  }

  // go loads one of our pages. by is the link or form that the citizen used, body the
  // content of the form. Both may be missing.
  function go(url, body, by) {
    var mine = ++asking;
    fetch(url, {
      method: body ? "POST" : "GET", body: body, credentials: "omit", cache: "no-store",
      headers: { "Accept": "text/html", "Authorization": "Bearer " + secret }
    }).then(function (answer) {
      return answer.text().then(function (text) {
        // An answer that is not our page comes from a proxy. A page that cannot be read
        // now is requested again, otherwise nobody would learn of the payment.
        if (!/ id="main"/.test(text) || !body && (answer.status > 499 || answer.status === 429)) throw new Error(answer.status);
        if (mine === asking) put(text, by);
      });
    }).catch(function () {
      if (mine !== asking) return;
      say("error", { code: "network", retryable: true });
      if (by) by.sent = false;
      doc.querySelectorAll("button").forEach(function (b) { b.removeAttribute("aria-disabled"); });
      window.quittanceLost(by && by.dataset.lost || main().dataset.lost, body && by || main());
      if (!body) setTimeout(function () { if (mine === asking) go(url, null, by); }, 5000);
    });
  }

  function put(text, by) {
    var page = new DOMParser().parseFromString(text, "text/html");
    if (!page.getElementById("main")) return say("error", { code: "unavailable", retryable: true });
    doc.title = page.title;
    page.body.removeAttribute("inert");
    root.lang = page.documentElement.lang;
    doc.body.replaceWith(page.body);
    scrollTo(0, 0);
    doc.dispatchEvent(new CustomEvent("quittance:page"));
    var first = doc.getElementById("errors");
    if (!first) {
      main().focus({ preventScroll: true });
      first = doc.querySelector("h1");
    }
    // If the frame is as high as its page, the parent scrolls, in browsers that let a frame
    // cause it.
    if (by && first) first.scrollIntoView({ block: "nearest" });
    show();
  }

  // show sends the parent the messages about the present page.
  function show() {
    var m = main(), state = m.dataset.state, close = doc.getElementById("close");
    if (close) {
      close.hidden = false;
      close.addEventListener("click", function () { say("closed"); });
    }
    if (state === "reload") return; // the messaging script asks for the secret
    if (state === "unknown") return say("error", { code: "session_not_found", retryable: false });
    if (state === "unavailable") return say("error", { code: "unavailable", retryable: true });
    once("ready");
    if (state === "waiting" && m.dataset.kind === "card") once("pending", { reason: "card" });
    if (state === "completed") return complete(m.dataset.token, 0);
    if (/^(failed|expired|cancelled|undecided|late|mismatched)$/.test(state)) once("ended");
  }

  // complete requests the token that the integrator's back end verifies. It repeats the
  // request until it succeeds, because the payment is made.
  function complete(url, n) {
    if (told.complete) return;
    fetch(url, { method: "POST", credentials: "omit", cache: "no-store", headers: { "Authorization": "Bearer " + secret } }).then(function (answer) {
      if (answer.status === 401 || answer.status === 404) {
        told.complete = true;
        return say("error", { code: "completion_token_refused", retryable: false });
      }
      if (!answer.ok) throw new Error(answer.status);
      return answer.json().then(function (body) { once("complete", { completion_token: body.completion_token }); });
    }).catch(function () {
      setTimeout(function () { complete(url, n + 1); }, Math.min(1000 * Math.pow(2, n), 15000));
    });
  }

  doc.body.removeAttribute("inert");
  if (!secret) return show();
  window.quittanceLoad = go;
  doc.addEventListener("submit", function (event) {
    var form = event.target;
    if (event.defaultPrevented) return;
    event.preventDefault();
    if (form.sent) return;
    var body = new URLSearchParams(new FormData(form)), by = event.submitter;
    if (by && by.name) body.set(by.name, by.value);
    if (form.method === "get") go(form.action + "?" + body, null, form);
    else go(form.action, body, form);
  });
  doc.addEventListener("click", function (event) {
    var a = event.target.closest ? event.target.closest("a") : null;
    if (!a || a.target || a.origin !== location.origin || a.pathname.indexOf("/embed/") || a.hash) return;
    event.preventDefault();
    go(a.href, null, a);
  });
  // page.js runs after this script, so wait for it.
  setTimeout(show, 0);
})();
