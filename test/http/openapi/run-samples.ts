/** Runs the code samples of the API reference against a server, as a reader would who copies them into a file. */
import { execFile, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { callOf, codeSample, type Language } from '../../../src/http/openapi/code-samples.js'
import type { Described } from '../../../src/http/openapi/described.js'
import { callableOf } from '../../../src/http/openapi/operation-html.js'
import { openTestAppliance } from '../../support/program/appliance.js'
import { until } from '../../support/until.js'

interface Runtime {
  readonly file: string
  readonly command: readonly [string, ...string[]]
  /** Succeeds where samples can run. */
  readonly probe: readonly [string, ...string[]]
}

const RUNTIMES: Readonly<Record<Language, Runtime>> = {
  curl: { file: 'sample.sh', command: ['sh'], probe: ['curl', '--version'] },
  node: { file: 'sample.mjs', command: [process.execPath], probe: [process.execPath, '--version'] },
  python: { file: 'sample.py', command: ['python3'], probe: ['python3', '--version'] },
  php: { file: 'sample.php', command: ['php'], probe: ['php', '-r', 'curl_init();'] },
  go: { file: 'sample.go', command: ['go', 'run'], probe: ['go', 'version'] },
}

export function canRun(language: Language): boolean {
  const [program, ...args] = RUNTIMES[language].probe
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0
}

/** What each language has to escape. */
const HOSTILE = 'it\'s "q" \\ back `tick` $HOME ${x} #{y} %s </script> é 🎉\nline two\ttab'

/** Reads, creates, uploads and lists by the samples in one language, and checks what the server has then. */
export async function trySamples(t: Test, language: Language): Promise<void> {
  const postroad = await openTestAppliance(t)
  const { key, baseUrl } = postroad
  const document = (await postroad.get('/openapi.json')).body as Described
  const folder = t.testdir({ 'contacts.csv': 'Email,First name\nbob@example.com,Bob\n' })
  const { file, command } = RUNTIMES[language]
  const run = async (operationId: string, values?: Record<string, string>, body?: unknown) => {
    const call = callOf(
      { base: `${baseUrl}/api/v1`, token: 'POSTROAD_KEY' },
      callableNamed(document, operationId, body),
      values,
    )
    writeFileSync(join(folder, file), codeSample(language, call))
    const [program, ...args] = command
    const { stdout } = await promisify(execFile)(program, [...args, file], {
      cwd: folder,
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], POSTROAD_KEY: key },
    })
    return stdout
  }
  t.match(await run('getKeyPermissions'), '"full_access"', 'a read')
  const attributes = { note: HOSTILE, [HOSTILE.slice(0, 20)]: [1, 2.5, true, null, {}, []], empty: {} }
  await run('createContact', undefined, { email: 'ann@example.com', first_name: "O'Hara", attributes })
  const listed = await postroad.get('/api/v1/contacts?search=ann%40example.com', { key })
  t.match(listed.body.data, [{ email: 'ann@example.com', first_name: "O'Hara" }], 'a body')
  t.same(listed.body.data[0].attributes, attributes, 'a body keeps every character and value')
  t.match(await run('importContacts'), '"queued"', 'an upload')
  const isImported = async () =>
    (await postroad.get('/api/v1/contacts?search=bob%40example.com', { key })).body.data.length === 1
  await until('the import', isImported)
  const page = await run('listContacts', { limit: '1', search: 'ann@example.com' })
  t.match(page, '"total":1', 'a list')
  const id = String(listed.body.data[0].id)
  await run('deleteContact', { id })
  t.equal((await postroad.get(`/api/v1/contacts/${id}`, { key })).status, 404, 'a removal')
}

function callableNamed(document: Described, operationId: string, body: unknown) {
  for (const [path, methods] of Object.entries(document.paths))
    for (const [method, operation] of Object.entries(methods))
      if (operation.operationId === operationId) {
        const callable = callableOf({ method, path, operation })
        return body === undefined || !callable.body
          ? callable
          : { ...callable, body: { ...callable.body, example: body } }
      }
  throw new Error(`no operation ${operationId}`)
}
