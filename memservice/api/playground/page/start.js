"use strict";

// Paths are relative to the page, so that it works behind a proxy that adds a prefix.
const root = document.getElementById("swagger-ui");
const documents = JSON.parse(root.dataset.documents);
const wanted = new URLSearchParams(location.search).get("of");
const chosen = documents.find((each) => each.name === wanted) || documents[0];

if (documents.length > 1) {
  const list = document.getElementById("documents");
  for (const each of documents) {
    const link = document.createElement("a");
    link.href = "?of=" + encodeURIComponent(each.name);
    link.textContent = each.name;
    if (each === chosen) link.setAttribute("aria-current", "page");
    list.append(link);
  }
  list.hidden = false;
}

// Requests go where the page came from, prefix and all: without this they would leave the prefix, and take the key along.
const here = new URL(".", location.href).href.replace(/\/$/, "");
const ServedHere = () => ({
  statePlugins: {
    spec: { wrapActions: { updateJsonSpec: (update) => (described) => update({ ...described, servers: [{ url: here }] }) } },
  },
});

SwaggerUIBundle({
  url: chosen.path,
  domNode: root,
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [ServedHere],
  layout: "BaseLayout",
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: "list",
  filter: true,
  persistAuthorization: false,
  queryConfigEnabled: false,
  validatorUrl: null,
});
