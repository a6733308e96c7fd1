// The portals of staff: passkeys, forms that are sent once, copying, regions that stay current. All else works without it.
(() => {
  const all = (selector) => document.querySelectorAll(selector);
  // A page from the browser's memory may show what somebody who has signed out may not see.
  addEventListener("pageshow", (event) => event.persisted && location.reload());

  const decode = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
  const encode = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  // post throws what the service says, or nothing to say.
  const post = async (path, type, body) => {
    const answer = await fetch(path, { method: "POST", headers: { "Content-Type": type }, body });
    const said = await answer.json().catch(() => ({}));
    if (!answer.ok) throw said;
    return said;
  };
  // Browsers before 2025 lack parseCreationOptionsFromJSON and toJSON.
  const options = ({ publicKey }) => {
    publicKey.challenge = decode(publicKey.challenge);
    if (publicKey.user) publicKey.user.id = decode(publicKey.user.id);
    for (const c of [...publicKey.excludeCredentials || [], ...publicKey.allowCredentials || []]) c.id = decode(c.id);
    return { publicKey };
  };
  const json = (credential) => {
    const response = {};
    for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
      if (credential.response[name]) response[name] = encode(credential.response[name]);
    }
    if (credential.response.getTransports) response.transports = credential.response.getTransports();
    return JSON.stringify({ id: credential.id, rawId: encode(credential.rawId), type: credential.type, response, clientExtensionResults: credential.getClientExtensionResults() });
  };

  // A form of a passkey: its fields go to data-begin, which answers with options; what the passkey answers goes to
  // data-finish, and then data-next is opened. data-make makes a passkey instead of asking for one, data-whole sends the
  // fields beside the answer.
  for (const form of all("form[data-begin]")) {
    const { begin, finish, next, host, failed, make, demo, whole } = form.dataset;
    const fault = form.querySelector("[role=alert]"), button = form.querySelector("button"), without = document.getElementById(form.id + "-without");
    if (!demo && (!window.PublicKeyCredential || location.hostname !== host)) {
      if (without) without.hidden = false;
      continue;
    }
    form.hidden = false;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = fault.hidden = true;
      try {
        const fields = new URLSearchParams(new FormData(form));
        const begun = await post(begin, "application/x-www-form-urlencoded", fields);
        if (begun.next) return location.assign(begun.next); // it was sent before
        // In developer mode the passkey of a demo person is not in this browser.
        const answer = demo ? JSON.stringify(await post(demo, "application/json", JSON.stringify(begun)))
          : json(await (make ? navigator.credentials.create(options(begun)) : navigator.credentials.get(options(begun))));
        const done = await post(finish, "application/json", whole ? JSON.stringify({ form: `${fields}`, answer }) : answer);
        location.assign(done.next || next);
      } catch (e) {
        fault.textContent = e.said || failed;
        if (e.again) form.elements.id.value = e.again; // the next try is another request
        fault.hidden = button.disabled = false;
        fault.focus();
      }
    });
  }

  // The secret of a link stands behind the #, which no server is told. It leaves the address at once.
  for (const form of all("form[data-hash]")) {
    const secret = location.hash.slice(1);
    history.replaceState(null, "", location.pathname + location.search);
    form.elements[form.dataset.hash].value = secret;
    form.hidden = !secret;
    document.getElementById(form.id + "-without").hidden = !!secret;
  }

  for (const out of all("[data-link]")) {
    if (!location.hash) continue;
    out.querySelector("code").textContent = out.dataset.link + location.hash.slice(1);
    out.hidden = false;
    history.replaceState(null, "", location.pathname + location.search);
  }

  for (const form of all("form[data-once]")) {
    form.addEventListener("submit", (event) => {
      if (form.sent) return event.preventDefault();
      form.sent = true;
      (event.submitter || form).setAttribute("aria-busy", "true");
      if (event.submitter) event.submitter.textContent = form.dataset.once;
    });
  }

  for (const button of all("button[data-copy]")) {
    if (!navigator.clipboard) break;
    button.hidden = false;
    button.addEventListener("click", () => navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent));
  }

  const regions = all("[data-live]"), pause = document.getElementById("pause");
  if (!regions.length) return;
  const policy = window.trustedTypes?.createPolicy("region", { createHTML: (text) => text });
  let tag = "", paused = false, timer;
  if (pause) {
    pause.hidden = false;
    pause.addEventListener("click", () => {
      paused = !paused;
      pause.setAttribute("aria-pressed", paused);
      pause.textContent = paused ? pause.dataset.resume : pause.dataset.pause;
    });
  }
  // Nothing changes under the hands of a person.
  const busy = () => document.hidden || paused || !getSelection().isCollapsed ||
    [...regions].some((r) => r.contains(document.activeElement) || r.querySelector("input:checked, details[open]"));
  const refresh = async () => {
    if (busy()) return;
    const answer = await fetch(location.href, { headers: tag ? { "Quittance-Asks": "1", "If-None-Match": tag } : { "Quittance-Asks": "1" } });
    if (answer.status === 401) {
      clearInterval(timer);
      regions[0].before(Object.assign(document.createElement("p"), { className: "warn", textContent: regions[0].dataset.live }));
    }
    if (answer.status !== 200) return;
    tag = answer.headers.get("ETag") || "";
    const text = await answer.text();
    if (busy()) return;
    const fresh = new DOMParser().parseFromString(policy ? policy.createHTML(text) : text, "text/html");
    for (const region of regions) {
      const now = fresh.getElementById(region.id);
      if (now && now.innerHTML !== region.innerHTML) region.replaceChildren(...document.importNode(now, true).childNodes);
    }
  };
  timer = setInterval(() => refresh().catch(() => {}), 15000);
})();
