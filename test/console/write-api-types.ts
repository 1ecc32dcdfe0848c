/**
 * Writes the types of both APIs for the console: `node build/test/console/write-api-types.js FOLDER`.
 *
 * They come from the OpenAPI documents that a server of this build serves, so that code of the console which asks for a field the API
 * no longer has does not compile. It is a test only to be given a server and have it closed.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import openapiTS, { astToString } from 'openapi-typescript'
import t from 'tap'
import { ADMIN_DOCUMENT, REST_DOCUMENT } from '../support/api/api-document.js'
import { openTestAppliance } from '../support/program/appliance.js'

const [, , folder = 'node_modules/.cache/console/types'] = process.argv

t.test('types of the APIs are written', async t => {
  const { baseUrl } = await openTestAppliance(t)
  mkdirSync(folder, { recursive: true })
  for (const [name, path] of [
    ['rest', REST_DOCUMENT],
    ['admin', ADMIN_DOCUMENT],
  ] as const) {
    // Free-form objects have unknown values.
    const types = await openapiTS(new URL(baseUrl + path), { defaultNonNullable: false })
    writeFileSync(join(folder, `${name}.ts`), astToString(types))
  }
})
