// Passkeys on the portal's pages: the form #passkey adds one or signs in with one. It stays
// hidden without this script, in a browser without passkeys, and at an address that has none.
(() => {
  const form = document.getElementById("passkey"), offer = document.getElementById("passkey-offer");
  if (!form || !window.PublicKeyCredential || location.hostname !== form.dataset.host) return;
  const words = form.dataset, button = form.querySelector("button"), fault = document.getElementById("passkey-fault");

  const decode = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
  const encode = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

  // call throws the status of a refusal.
  const call = async (path, credential) => {
    const answer = await fetch(`/api/v1/citizen/${path}?lang=${form.elements.lang.value}`, credential ?
      { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(json(credential)) } : { method: "POST" });
    if (!answer.ok) throw answer.status;
    return answer;
  };
  // Browsers before 2025 lack parseCreationOptionsFromJSON and toJSON.
  const begin = async (path) => {
    const { publicKey } = await (await call(path)).json();
    publicKey.challenge = decode(publicKey.challenge);
    if (publicKey.user) publicKey.user.id = decode(publicKey.user.id);
    for (const c of publicKey.excludeCredentials || []) c.id = decode(c.id);
    return publicKey;
  };
  const json = (credential) => {
    const response = {};
    for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
      if (credential.response[name]) response[name] = encode(credential.response[name]);
    }
    return { id: credential.id, rawId: encode(credential.rawId), type: credential.type, response, clientExtensionResults: credential.getClientExtensionResults() };
  };

  const add = async () => {
    await call("passkeys/finish", await navigator.credentials.create({ publicKey: await begin("passkeys/begin") }));
    location.assign(words.done);
  };

  let asked = new AbortController(), renewal;
  const signIn = async (mediation) => {
    asked.abort(); // a browser answers one request at a time
    const { signal } = asked = new AbortController();
    const publicKey = await begin("sign-in/passkey/begin");
    await call("sign-in/passkey/finish", await navigator.credentials.get({ publicKey, signal, mediation }));
    form.submit();
  };

  const failed = (e) => {
    if (words.do === "add" && (e === 401 || e === 403)) return location.assign(words.again);
    fault.textContent = words.do === "add" ? e === 409 ? words.full : e.name === "InvalidStateError" ? words.known : words.failed :
      e === 401 ? words.unknown : words.unused;
    fault.hidden = button.disabled = false;
  };

  // suggest lets the browser name the passkey in the field of the address. A challenge is valid
  // for five minutes.
  const suggest = async () => {
    if (document.hidden) return document.addEventListener("visibilitychange", suggest, { once: true });
    renewal = setTimeout(suggest, 240000);
    try {
      await signIn("conditional");
    } catch (e) {
      if (e === 401) failed(e);
    }
  };

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    clearTimeout(renewal);
    button.disabled = fault.hidden = true;
    try {
      await (words.do === "add" ? add() : signIn());
    } catch (e) {
      failed(e);
    }
  });

  const show = async () => {
    if (offer && !await PublicKeyCredential.isUserVerifyingPlatformAuthenticatorAvailable()) return;
    for (const e of [form, offer]) if (e) e.hidden = false;
    const without = document.getElementById("passkey-without");
    if (without) without.hidden = true;
    if ("first" in words && await PublicKeyCredential.isConditionalMediationAvailable?.()) {
      if (document.readyState === "complete") suggest();
      else addEventListener("load", suggest, { once: true }); // the page comes first
    }
  };
  show();
})();
