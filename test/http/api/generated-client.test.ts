/**
 * The API's description as client generators see it: what @hey-api/openapi-ts and openapi-typescript make of it compiles under strict
 * TypeScript, and programs written with it (the latter's with openapi-fetch) send a mail.
 */
import { mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createClient } from '@hey-api/openapi-ts'
import { build } from 'esbuild'
import openapiTS, { astToString } from 'openapi-typescript'
import t, { type Test } from 'tap'
import ts from 'typescript'
import { ADMIN_DOCUMENT, faultOf, readOperations, type Operation } from '../../support/api/api-document.js'
import { tokenWith } from '../../support/program/operators.js'
import { openTestAppliance } from '../../support/program/appliance.js'

/** As a user would write it: nothing in it is known to anybody but the generator. */
const PROGRAM = `
import { createClient } from './client/client'
import { addDomain, getEmail, getEmailStatus, listEmails, sendEmail } from './client'
import type { Domain, Message, SendResult } from './client'

export async function run(baseUrl: string, key: string) {
  const client = createClient({ baseUrl, auth: key, throwOnError: true })
  const domain: Domain = (await addDomain({ client, throwOnError: true, body: { domain: 'shop.example' } })).data.data
  const { data: answer } = await sendEmail({
    client,
    throwOnError: true,
    headers: { 'Idempotency-Key': 'order 1' },
    body: { to: ['ann@example.net'], from_email: 'shop@sender.example', subject: 'Order', text: 'Thank you.' },
  })
  const sent = answer.data
  if (!('results' in sent)) throw new Error('scheduled')
  const result: SendResult = sent
  const messageId = result.results[0]!.message_id
  const message: Message = (await getEmail({ client, throwOnError: true, path: { messageId } })).data.data
  const { data: status } = await getEmailStatus({ client, throwOnError: true, path: { messageId } })
  const { data: log } = await listEmails({ client, throwOnError: true, query: { limit: 1 } })
  const { error } = await sendEmail({ client, throwOnError: false, body: { to: 'ann@example.net', subject: 'No content' } })
  return {
    records: domain.dns_records.length,
    to: result.results[0]!.to,
    subject: message.subject,
    status: status.data.status,
    total: log.pagination.total,
    refusal: error?.error.code,
  }
}
`

/** Fields with defaults are left out, free-form fields are filled, configurations are those of their type. */
const FETCH_PROGRAM = `
import createClient from 'openapi-fetch'
import type { components, paths } from './schema'

export async function run(baseUrl: string, key: string) {
  const client = createClient<paths>({ baseUrl, headers: { Authorization: 'Bearer ' + key } })
  const { data: contact } = await client.POST('/contacts', {
    body: { email: 'ann@example.net', attributes: { plan: 'pro', visits: [1, 2] } },
  })
  const plan: unknown = contact?.data.attributes['plan']
  const { data: sent } = await client.POST('/email/send', {
    body: { to: 'ann@example.net', subject: 'Order', text: 'Thank you, {{name}}.', template_data: { name: 'Ann' } },
  })
  const results = sent && 'results' in sent.data ? sent.data.results : []
  const delay: components['schemas']['DelayStepConfig'] = { duration: 2, unit: 'hours' }
  const { data: automation } = await client.POST('/automations', {
    body: {
      name: 'Welcome',
      trigger_type: 'date',
      trigger_config: { field: 'birthday', repeat: 'yearly' },
      steps: [{ step_type: 'delay', config: delay }],
    },
  })
  const { data: segment } = await client.POST('/segments', {
    body: { name: 'Pro', conditions: { match: 'all', rules: [{ field: 'plan', operator: 'equals', value: 'pro' }] } },
  })
  const { error } = await client.GET('/contacts/{id}', { params: { path: { id: 'none' } } })
  return {
    plan,
    to: results[0]?.to,
    steps: automation?.data.steps.length,
    segment: segment?.data.name,
    refusal: error?.error.code,
  }
}
`

/** Calls every operation of the admin API with the example of its body. */
const ADMIN_PROGRAM = `
import { createClient } from './client/client'
import * as sdk from './client'
import { getMe } from './client'

export interface Call {
  readonly operationId: string
  readonly path: Record<string, string>
  readonly query: Record<string, string>
  readonly body: unknown
}

type Operation = (options: object) => Promise<{ response?: Response; data?: unknown; error?: unknown }>

export async function run(baseUrl: string, token: string, calls: readonly Call[]) {
  const client = createClient({ baseUrl, auth: token })
  const { data: me } = await getMe({ client, throwOnError: true })
  const role: string | undefined = me.data.roles[0]?.role
  const operations = sdk as unknown as Record<string, Operation>
  const answers: { status: number; text: string; type: string }[] = []
  for (const { operationId, ...options } of calls) {
    const operation = operations[operationId]
    if (!operation) throw new Error('no ' + operationId)
    const { response, data, error } = await operation({ client, parseAs: 'text', ...options })
    answers.push({
      status: response?.status ?? 0,
      text: typeof data === 'string' ? data : JSON.stringify(error ?? data ?? null),
      type: response?.headers.get('content-type') ?? '',
    })
  }
  return { role, answers }
}
`

/** @returns the folder that the client lies in, below a program that uses it */
async function generate(t: Test, document: string, program = PROGRAM): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'postroad-client-'))
  writeFileSync(join(folder, 'openapi.json'), document)
  writeFileSync(join(folder, 'program.ts'), program)
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  await createClient({
    input: join(folder, 'openapi.json'),
    output: join(folder, 'client'),
    plugins: ['@hey-api/typescript', '@hey-api/sdk', '@hey-api/client-fetch'],
    logs: { level: 'silent', file: false },
  })
  t.match(readFileSync(join(folder, 'client', 'sdk.gen.ts'), 'utf8'), /export const (sendEmail|getMe) =/)
  return folder
}

function faultsOf(file: string): string[] {
  const program = ts.createProgram([file], {
    strict: true,
    noEmit: true,
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    lib: ['lib.es2023.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
    types: [],
    skipLibCheck: true,
  })
  return ts
    .getPreEmitDiagnostics(program)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
}

/** Compiles and imports a program. */
async function load(program: string) {
  const outfile = program.replace(/ts$/, 'mjs')
  await build({
    entryPoints: [program],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    logLevel: 'silent',
  })
  return (await import(pathToFileURL(outfile).href)) as {
    run: (baseUrl: string, key: string, calls?: readonly object[]) => Promise<unknown>
  }
}

t.test('a client that a generator made of the description compiles and sends a mail', async t => {
  const appliance = await openTestAppliance(t)
  const document = await (await fetch(`${appliance.baseUrl}/openapi.json`)).text()
  const folder = await generate(t, document)
  t.same(faultsOf(join(folder, 'program.ts')), [])
  const { run } = await load(join(folder, 'program.ts'))
  t.match(await run(`${appliance.baseUrl}/api/v1`, appliance.key), {
    records: Number,
    to: 'ann@example.net',
    subject: 'Order',
    status: 'sent',
    total: 1,
    refusal: 'no_content',
  })
})

t.test('types that openapi-typescript makes let openapi-fetch ask without a cast', async t => {
  const appliance = await openTestAppliance(t)
  await appliance.run('workspace', 'set', appliance.workspaceId, 'default_from_email=shop@sender.example')
  const folder = mkdtempSync(join(tmpdir(), 'postroad-types-'))
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  const schema = await openapiTS(new URL(`${appliance.baseUrl}/openapi.json`))
  writeFileSync(join(folder, 'schema.ts'), astToString(schema))
  writeFileSync(join(folder, 'program.ts'), FETCH_PROGRAM)
  t.same(faultsOf(join(folder, 'program.ts')), [])
  const { run } = await load(join(folder, 'program.ts'))
  t.same(await run(`${appliance.baseUrl}/api/v1`, appliance.key), {
    plan: 'pro',
    to: 'ann@example.net',
    steps: 1,
    segment: 'Pro',
    refusal: 'contact_not_found',
  })
})

const MADE_UP = '0192f000-0000-7000-8000-00000000abcd'

t.test(
  'a client generated from the admin API compiles, and every operation answers as described',
  async t => {
    const appliance = await openTestAppliance(t, { env: { POSTROAD_HTTP_ANONYMOUS_RATE_LIMIT: '0' } })
    const document = await (await fetch(appliance.baseUrl + ADMIN_DOCUMENT)).text()
    const folder = await generate(t, document, ADMIN_PROGRAM)
    t.same(faultsOf(join(folder, 'program.ts')), [])
    const operations = (await readOperations(appliance.baseUrl, ADMIN_DOCUMENT))
      // A stream does not end; its answer is in test/metrics/live-stream.test.ts.
      .filter(({ operationId }) => operationId !== 'streamLive')
      .sort(readsFirst)
    const calls = operations.map(operation => ({
      operationId: operation.operationId,
      path: Object.fromEntries(
        operation.pathParameters.map(name => [
          name,
          name === 'workspaceId' ? appliance.workspaceId : MADE_UP,
        ]),
      ),
      query: {},
      body: operation.body?.example ?? operation.file?.example,
    }))
    const token = await tokenWith(appliance, 'owner')
    const { run } = await load(join(folder, 'program.ts'))
    const { role, answers } = (await run(`${appliance.baseUrl}/api/admin/v1`, token, calls)) as {
      role: string
      answers: readonly { status: number; text: string; type: string }[]
    }
    t.equal(role, 'owner')
    for (const [at, operation] of operations.entries()) {
      const { status = 0, text = '', type = '' } = answers[at] ?? {}
      const headers = new Headers({ 'content-type': type })
      t.equal(faultOf(operation, { status, text, headers }), undefined, operation.name)
    }
  },
)

/** Reads before writes, and what ends the workspace or the caller last. */
function readsFirst(a: Operation, b: Operation): number {
  const rank = ({ method }: Operation) => ['GET', 'POST', 'PATCH', 'PUT', 'DELETE'].indexOf(method)
  return rank(a) - rank(b)
}
