// Live status and conveniences of the checkout page. The page works without this script.
// The script only learns that the session has another version, and then loads the page
// again. Only the server tells the outcome of the payment.
(function () {
  "use strict";
  var doc = document;
  var at = function (id) { return doc.getElementById(id); };
  // In a frame embed.js loads pages. It sends the event quittance:page for each.
  var load = window.quittanceLoad || function (url) { location.replace(url); };
  var framed = !!window.quittanceLoad;
  // Who pays by reference must be known again by the page of the result. A frame need not be.
  var credentials = framed ? "omit" : "same-origin";

  // The review is the answer to a form. Without this, Back or a reload would make the
  // browser send the form again.
  if (history.replaceState && !framed) history.replaceState(null, "", location.href);

  // busy makes a second tap on a form that is being sent have no effect. The buttons are
  // not disabled: a disabled button would not send the offer that it names.
  function busy(form, on) {
    form.sent = on;
    form.querySelectorAll("button").forEach(function (button) {
      if (on) button.setAttribute("aria-disabled", "true"); else button.removeAttribute("aria-disabled");
    });
  }
  doc.addEventListener("submit", function (event) {
    var form = event.target;
    if (form.sent) return event.preventDefault();
    busy(form, true);
    leave();
    if (framed || !form.dataset.lost || !window.fetch || !window.URLSearchParams || !window.AbortController) return;
    event.preventDefault();
    confirm(form);
  });

  // confirm sends the confirmation of a payment. Without network the page stays and says so. The
  // form can be sent again: its attempt makes it the same payment. A card payment goes on at the
  // address in the answer.
  function confirm(form) {
    var sent = new AbortController(), limit = setTimeout(function () { sent.abort(); }, 30000);
    fetch(form.action, {
      method: "POST", headers: { "Accept": "application/json" }, body: new URLSearchParams(new FormData(form)), signal: sent.signal
    }).then(function (answer) {
      if (answer.status > 499) throw new Error(answer.status);
      if (answer.redirected) return location.assign(answer.url);
      if (!answer.ok) return form.submit(); // the same answer as a page
      return answer.json().then(function (answer) {
        // The address of the form leads to the page of the payment.
        location.assign(answer.next_action ? answer.next_action.redirect.url : form.action);
      });
    }).catch(function () {
      busy(form, false);
      lost(form.dataset.lost, form);
    }).then(function () { clearTimeout(limit); });
  }
  // lost says at the top of a form or of the page that something could not be sent.
  function lost(text, where) {
    var p = at("lost") || where.insertBefore(doc.createElement("p"), where.firstChild);
    p.id = "lost";
    p.className = "errors";
    p.setAttribute("role", "alert");
    p.textContent = text;
  }
  window.quittanceLost = lost;
  doc.addEventListener("click", function (event) {
    var a = event.target.closest ? event.target.closest("a") : null;
    var elsewhere = event.ctrlKey || event.metaKey || event.shiftKey; // opens another tab
    if (a && !elsewhere && !a.target && !a.hash && a.origin === location.origin) leave();
  });
  window.addEventListener("pageshow", function (event) {
    if (!event.persisted) return;
    leaving = null;
    doc.querySelectorAll("form").forEach(function (form) { busy(form, false); });
    ask();
  });

  var data, said, calm, timer, ticking, running, leaving, shown, failures, delays;

  // show starts the live status of the page in the document.
  function show() {
    if (running) running.abort();
    clearTimeout(timer);
    clearTimeout(ticking);
    leaving = running = null;
    shown = performance.now();
    failures = 0;
    var errors = at("errors");
    if (errors) errors.focus();
    var printer = at("print");
    if (printer) {
      printer.hidden = false;
      printer.addEventListener("click", function () { window.print(); });
    }
    // Without the clipboard, as in some frames, the reference is selected.
    var copy = at("copy"), text = at("remittance");
    if (copy) {
      copy.hidden = false;
      copy.addEventListener("click", function () {
        function select() { window.getSelection().selectAllChildren(text); }
        if (!navigator.clipboard) return select();
        navigator.clipboard.writeText(text.getAttribute("value")).then(function () { copy.textContent = copy.dataset.done; }, select);
      });
    }
    var live = at("live"), clock = at("clock");
    data = live ? live.dataset : {};
    said = at("status");
    calm = said ? said.textContent : ""; // the status while there is no problem

    // Count down the rest of the approval window from the server's figure, because a
    // phone's clock may be wrong by hours.
    if (clock && data.left) {
      var end = shown + 1000 * data.left, words = data;
      var tick = function () {
        var left = Math.max(0, Math.round((end - performance.now()) / 1000));
        clock.textContent = words.label + " " + Math.floor(left / 60) + ":" + ("0" + left % 60).slice(-2);
        if (left) ticking = setTimeout(tick, 500); else say(calm = words.over);
      };
      tick();
    }
    ask();
  }

  function say(text) {
    if (said && said.textContent !== text) said.textContent = text;
  }

  function reload() {
    if (leaving) return;
    leaving = true;
    // At most once in two seconds, in case two servers report different versions.
    timer = setTimeout(function () { load(data.self); }, Math.max(0, 2000 - (performance.now() - shown)));
  }

  function heard(version) {
    if (failures) say(calm);
    failures = 0;
    if (version !== undefined && version !== data.version) reload();
  }

  // leave stops the live status, because the citizen leaves the page. A reload would now
  // cancel the request that was sent; in a frame it would not. If the page is still open
  // after 30 seconds, the live status starts again.
  function leave() {
    if (framed) return;
    leaving = true;
    if (running) running.abort();
    clearTimeout(timer);
    timer = setTimeout(function () { leaving = null; ask(); }, 30000);
  }

  function get(type, signal) {
    return fetch(data.live, {
      headers: { "Accept": type, "Last-Event-ID": data.version },
      cache: "no-store", credentials: credentials, signal: signal
    }).then(function (answer) {
      if (!answer.ok) throw new Error(answer.status);
      return answer;
    });
  }

  // poll asks for the version once, then again after a growing delay. It is used when
  // there is no stream.
  function poll() {
    var mine = running = new AbortController();
    var limit = setTimeout(function () { mine.abort(); }, 10000);
    get("application/json", mine.signal).then(function (answer) { return answer.json(); }).then(function (body) {
      if (mine === running) heard(body.version);
    }, function () {
      if (mine === running && ++failures > 2) say(data.lost);
    }).then(function () {
      clearTimeout(limit);
      if (mine !== running || leaving) return;
      timer = setTimeout(poll, delays[0]);
      if (delays.length > 1) delays.shift();
    });
  }

  // stream reads versions as they change. A stream that is silent for two heartbeats is
  // closed, even if its connection looks open.
  function stream() {
    var mine = running = new AbortController(), silence, worked, pause = 1000, text = "", decoder = new TextDecoder();
    var alive = function () {
      clearTimeout(silence);
      silence = setTimeout(function () { mine.abort(); }, 32000);
    };
    alive();
    get("text/event-stream", mine.signal).then(function (answer) {
      if ((answer.headers.get("Content-Type") || "").indexOf("text/event-stream")) throw new Error("no stream");
      var reader = answer.body.getReader();
      return (function next() {
        return reader.read().then(function (part) {
          alive();
          if (part.done || mine !== running) return;
          worked = true;
          heard();
          text += decoder.decode(part.value, { stream: true });
          var lines = text.split(/\r\n|\n|\r/);
          text = lines.pop();
          lines.forEach(function (line) {
            var id = /^id: ?(.*)/.exec(line);
            if (id) heard(id[1]);
            var retry = /^retry: ?(\d+)$/.exec(line);
            if (retry) pause = Math.min(retry[1], 10000);
          });
          return next();
        });
      })();
    }).catch(function () {}).then(function () {
      clearTimeout(silence);
      // A stream that delivered something was interrupted: open it again. Otherwise
      // streams do not work here: poll.
      if (mine === running && !leaving) timer = setTimeout(worked ? stream : poll, pause);
    });
  }

  // ask starts the live status, also when the page becomes visible again: a phone closes
  // the stream while its owner types a code in another app.
  function ask() {
    if (!data.live || leaving || !window.fetch || !window.AbortController) return;
    if (running) running.abort();
    clearTimeout(timer);
    delays = [2000, 3000, 5000];
    if (window.ReadableStream && window.TextDecoder) stream(); else poll();
  }
  doc.addEventListener("visibilitychange", function () { if (!doc.hidden) ask(); });
  window.addEventListener("online", ask);
  doc.addEventListener("quittance:page", show);
  show();
})();
