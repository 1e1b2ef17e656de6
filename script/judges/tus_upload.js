// Uploads a file with tus-js-client, stops half-way, and goes on with a new client.
// Arguments: folder of node_modules, address of the portal, cookies, cluster, folder, file.
"use strict";

const fs = require("node:fs");
const { createRequire } = require("node:module");

const [judges, portal, cookie, cluster, folder, path] = process.argv.slice(2);
const tus = createRequire(`${judges}/`)("tus-js-client");

function upload(stopsAt, uploadUrl) {
  return new Promise((resolve, reject) => {
    const file = fs.createReadStream(path);
    const client = new tus.Upload(file, {
      endpoint: `${portal}/uploads`,
      uploadUrl,
      chunkSize: 1024 * 1024,
      uploadSize: fs.statSync(path).size,
      uploadDataDuringCreation: uploadUrl === undefined,
      retryDelays: [200, 1000, 3000],
      headers: { Cookie: cookie, Origin: portal },
      metadata: { cluster, folder, filename: "by tus-js-client" },
      onError: reject,
      onSuccess: () => resolve(null),
      onChunkComplete: (_, accepted) => {
        if (accepted < stopsAt) return;
        client.abort().then(() => resolve(client.url), reject);
      },
    });
    client.start();
  });
}

async function main() {
  const size = fs.statSync(path).size;
  const url = await upload(size / 2, undefined);
  if (!url) throw new Error("it did not stop half-way");
  await upload(Infinity, url);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
