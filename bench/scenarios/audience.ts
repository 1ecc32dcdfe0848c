/**
 * How fast the audience answers with a million contacts, each figure beside its limit, and whom it holds up meanwhile.
 *
 * Called by `main.ts`. Each row asks the same kind of question again and again, one after the other; beside it two other
 * clients ask for a list and hand in a mail twenty times a second, and their 99th percentile is to stay within a limit as
 * well. Nothing is delivered meanwhile (see `accept.ts`).
 */
import { fillAudience, cityOf, contactFile, type FilledAudience } from '../fill/fill-audience.js'
import { recipient, sendRequest } from '../fill/letters.js'
import { percentile, short } from '../numbers.js'
import { sendLoad, type Load, type LoadResult } from '../peers/api-load.js'
import { importFile, type ImportTarget } from '../peers/import-load.js'
import { openProbes, type Probes } from '../peers/probes.js'
import { openSilentServer } from '../peers/sinks.js'
import { copyInstallation, serve, type Installation } from '../server/server-process.js'
import { printTable } from '../table.js'
import { peakText } from './accept.js'

export interface AudienceOptions {
  readonly contacts: number
  /** Per row. */
  readonly limitMs: number
  readonly profile: boolean
}

interface Row {
  readonly name: string
  /** Of the median, ms; or of all together where there is one request. */
  readonly wantedMs: number
  readonly load: Pick<Load, 'path' | 'body'>
  /** As many as may be asked; where one is, it is asked without warming up. */
  readonly requests?: number
}

/** For everybody else, at the 99th percentile. */
const HELD_UP_MS = 50
const MOST_REQUESTS = 2_000
const WARM_UP_REQUESTS = 5
const MEMBERS = 5_000
/** Rows of an imported file, and how many a second there are to be. */
const IMPORTED = 200_000
const WANTED_ROWS = 20_000
/** Deleting or restoring a million has no time limit; its steps do. */
const NO_LIMIT = Infinity

export async function measureAudience(original: Installation, options: AudienceOptions): Promise<void> {
  const installation = await copyInstallation(original, 'audience')
  const startedAt = performance.now()
  const filled = await fillAudience(installation, options.contacts)
  const fillSeconds = (performance.now() - startedAt) / 1_000
  const silent = await openSilentServer()
  const outgoing = { port: silent.port, connections: 1, connectionsPerDestination: 1, reportsDelays: true }
  const server = await serve(installation, outgoing, options.profile ? 'audience' : undefined)
  const target = { port: server.port, key: installation.key, connections: 1, limitMs: options.limitMs }
  const probes = openProbes({
    ...target,
    // Rows that no cascade deletes.
    path: number => `/lists/${filled.listIds[number % filled.listIds.length]}`,
    body: number => sendRequest(number, recipient(number, 20)),
  })
  const segments = await makeSegments(target, filled)
  const rows: string[][] = []
  for (const row of [...readRows(filled, segments), ...writeRows(filled)]) {
    const load = { ...target, ...row.load }
    rows.push(await measured(row, load, probes).catch((error: unknown) => failed(row, error)))
  }
  const imports: string[][] = []
  for (const one of importsOf(filled)) imports.push(await measuredImport(one, target, probes))
  const peak = peakText(server)
  await probes.close()
  await server.stop()
  await silent.stop()
  const delays = server.delays()
  printTable(
    `Audience of ${options.contacts} contacts with five attributes, 50 lists, 200 tags`,
    [
      [
        '',
        'requests',
        'median ms',
        'p99 ms',
        'limit ms',
        'GET beside, p99',
        'send beside, p99',
        'limit ms',
        '',
      ],
      ...rows,
    ],
    [
      `Filled in ${fillSeconds.toFixed(0)} s: ${filled.insertedPerSecond.toFixed(0)} contacts a second. Pages are of 100.`,
      `At most ${options.limitMs / 1_000} s per row; the event loop was late by ${short(delays?.p99Ms ?? NaN)} ms at p99, ` +
        `${short(delays?.mostMs ?? NaN)} ms at most; server's peak memory ${peak}.`,
    ],
  )
  printTable(
    'Imports: five attributes for each row, and but for the first a list and a tag',
    [
      ['', 'rows', 'stored in, ms', 'rows/s', 'limit', 'GET beside, p99', 'send beside, p99', 'limit ms', ''],
      ...imports,
    ],
    [],
  )
}

interface ImportRun {
  readonly name: string
  readonly rows: number
  readonly file: Buffer
  readonly query: string
}

/** But for the first, everybody in them gets into a list and is given a tag. */
function importsOf({ contacts, listIds, tagNames }: FilledAudience): ImportRun[] {
  const rows = Math.min(IMPORTED, contacts)
  const both = `list_id=${listIds[3]}&tags=${encodeURIComponent(tagNames[3] ?? '')}`
  const run = (name: string, first: number, isOther = false, query = both): ImportRun => ({
    name,
    rows,
    query,
    file: contactFile(first, rows, isOther),
  })
  return [
    run('new contacts, into no list', contacts, false, ''),
    run('new contacts', contacts + rows),
    run('the same again', contacts + rows),
    run('the same, each with another attribute', contacts + rows, true),
  ]
}

async function measuredImport(
  { name, rows, file, query }: ImportRun,
  target: ImportTarget,
  probes: Probes,
): Promise<string[]> {
  probes.begin()
  const done = await importFile(target, file, query)
  const { reads, sends } = probes.end()
  if (done.rows !== rows || done.rejected > 0) throw new Error(`not all rows: ${JSON.stringify(done)}`)
  const [perSecond, read, send] = [
    (rows * 1_000) / done.workMs,
    percentile(reads, 0.99),
    percentile(sends, 0.99),
  ]
  const isOver = perSecond < WANTED_ROWS || Math.max(read, send) > HELD_UP_MS
  return [
    name,
    `${rows}`,
    done.uploadMs.toFixed(0),
    perSecond.toFixed(0),
    `${WANTED_ROWS}`,
    short(read),
    short(send),
    `${HELD_UP_MS}`,
    isOver ? 'over' : '',
  ]
}

async function measured(row: Row, load: Omit<Load, 'requests'>, probes: Probes): Promise<string[]> {
  if (row.requests !== 1) await sendLoad({ ...load, requests: WARM_UP_REQUESTS })
  probes.begin()
  const { requests, latencies }: LoadResult = await sendLoad({
    ...load,
    requests: row.requests ?? MOST_REQUESTS,
  })
  const { reads, sends } = probes.end()
  const [median, read, send] = [percentile(latencies, 0.5), percentile(reads, 0.99), percentile(sends, 0.99)]
  const isOver = median > row.wantedMs || Math.max(read, send) > HELD_UP_MS
  return [
    row.name,
    `${requests}`,
    short(median),
    short(percentile(latencies, 0.99)),
    row.wantedMs === NO_LIMIT ? '' : `${row.wantedMs}`,
    short(read),
    short(send),
    `${HELD_UP_MS}`,
    isOver ? 'over' : '',
  ]
}

/** The others are measured all the same. */
function failed({ name }: Row, error: unknown): string[] {
  return [
    name,
    ...Array.from({ length: 7 }, () => ''),
    error instanceof Error ? error.message : String(error),
  ]
}

type Target = Pick<Load, 'port' | 'key' | 'connections' | 'limitMs'>

const ESTIMATES = {
  'a list, an attribute, subscribed': [
    { field: 'lists', operator: 'in', value: ['List 1'] },
    { field: 'city', operator: 'equals', value: cityOf(7) },
    { field: 'subscribed', operator: 'equals', value: true },
  ],
  'nine in ten, by a number': [
    { field: 'age', operator: 'gte', value: 24 },
    { field: 'created_at', operator: 'after', value: '2000-01-01' },
    { field: 'bounced', operator: 'equals', value: false },
  ],
  'a tag, some cities, opened lately': [
    { field: 'tags', operator: 'in', value: ['tag 3', 'tag 4'] },
    { field: 'city', operator: 'in', value: [1, 2, 3, 4, 5].map(cityOf) },
    { field: 'last_opened_at', operator: 'within_days', value: 365 },
  ],
  'part of a text, not in a list, a name': [
    { field: 'company', operator: 'contains', value: 'cade' },
    { field: 'lists', operator: 'not_in', value: ['List 0'] },
    { field: 'first_name', operator: 'starts_with', value: 'ca' },
  ],
  'any of the three': [
    { field: 'plan', operator: 'equals', value: 'business' },
    { field: 'tags', operator: 'in', value: ['tag 9'] },
    { field: 'last_clicked_at', operator: 'is_set' },
  ],
} as const

async function makeSegments(target: Target, _: FilledAudience): Promise<ReadonlyMap<string, string>> {
  const made = new Map<string, string>()
  for (const [name, rules] of Object.entries(ESTIMATES)) {
    const match = name.startsWith('any') ? 'any' : 'all'
    const response = await fetch(`http://127.0.0.1:${target.port}/api/v1/segments`, {
      method: 'POST',
      headers: { authorization: `Bearer ${target.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name, conditions: { match, rules } }),
    })
    const { data } = (await response.json()) as { data: { id: string } }
    made.set(name, data.id)
  }
  return made
}

function readRows({ contacts, sample }: FilledAudience, segments: ReadonlyMap<string, string>): Row[] {
  const one = (number: number) => sample[(7 * number) % sample.length]!
  const page = (name: string, wantedMs: number, path: (number: number) => string): Row => ({
    name: `GET ${name}`,
    wantedMs,
    load: { path },
  })
  const words = (number: number) => `${one(number).firstName} ${one(number).lastName}`
  return [
    page('/contacts/:id', 1, number => `/contacts/${one(number).id}`),
    page('/contacts', 50, () => '/contacts'),
    page('/contacts, last page', 50, () => `/contacts?offset=${contacts - 100}`),
    page(
      '/contacts?subscribed=false, last page',
      50,
      () => `/contacts?subscribed=false&offset=${Math.floor(contacts * 0.029)}`,
    ),
    page(
      '/contacts?search= two names',
      50,
      number => `/contacts?search=${encodeURIComponent(words(number))}`,
    ),
    page('/contacts?search= name and domain', 50, number => {
      const { lastName, email } = one(number)
      return `/contacts?search=${encodeURIComponent(`${lastName} ${email.slice(email.indexOf('@'))}`)}`
    }),
    ...[...segments].map(([name, id]): Row => ({
      name: `POST estimate: ${name}`,
      wantedMs: 300,
      load: { path: () => `/segments/${id}/estimate`, body: () => Buffer.from('{}') },
    })),
  ]
}

function writeRows({ sample, listIds, contacts }: FilledAudience): Row[] {
  const json = (value: unknown) => Buffer.from(JSON.stringify(value))
  const post = (name: string, wantedMs: number, path: string, body: (number: number) => unknown): Row => ({
    name: `POST ${name}`,
    wantedMs,
    load: { path: () => path, body: number => json(body(number)) },
  })
  const ids = sample.map(({ id }) => id).slice(0, MEMBERS)
  return [
    post('/contacts', 3, '/contacts', number => ({
      email: `new${number}.${process.hrtime.bigint()}@d${number % 50}.example`,
      first_name: 'Nora',
      last_name: `New${number}`,
      attributes: { city: cityOf(number % 300), age: 18 + (number % 60), plan: 'free' },
    })),
    {
      ...post(`/lists/:id/members, ${ids.length} ids`, 300, '', () => ({ contact_ids: ids })),
      load: {
        path: number => `/lists/${listIds[(number + 10) % listIds.length]}/members`,
        body: () => json({ contact_ids: ids }),
      },
      requests: 10,
    },
    {
      ...post(`/contacts/delete-all, ${contacts}`, NO_LIMIT, '/contacts/delete-all', () => ({
        confirm: true,
      })),
      requests: 1,
    },
    {
      ...post(`/contacts/restore, ${contacts}`, NO_LIMIT, '/contacts/restore', () => ({ all: true })),
      requests: 1,
    },
  ]
}
