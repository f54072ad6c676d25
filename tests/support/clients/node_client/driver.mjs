// Runs every scenario: `node driver.mjs URL FOLDER`, where FOLDER has the client installed. Prints one JSON object: the client's version,
// the methods that no scenario calls, the parameters that none gives, and by scenario the seconds it took and how it failed (null if it did not).

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import './memory.mjs'
import './options.mjs'
import './resources.mjs'
import { called, FOLDER, methods, scenarios, ungiven } from './harness.mjs'

const results = {}
for (const [name, run] of scenarios) {
  const began = performance.now()
  let failure = null
  try {
    await run()
  } catch (error) {
    failure = error.stack ?? String(error)
  }
  results[name] = { seconds: Math.round(performance.now() - began) / 1000, failure }
}
const { version } = JSON.parse(readFileSync(join(FOLDER, 'node_modules/@honcho-ai/sdk/package.json'), 'utf8'))
const uncalled = [...methods].filter((name) => !called.has(name))
console.log(JSON.stringify({ client: version, scenarios: results, uncalled, ungiven: ungiven() }))
