/**
 * Every rule of the contract, every operation, error and limit of the running appliance has a test over HTTP that says so in a comment
 * (`read-claims.ts`), and every comment names something that exists.
 *
 * The contract is read if it lies beside the project; otherwise its places are not checked.
 */
import { existsSync, globSync, readFileSync } from 'node:fs'
import t from 'tap'
import { nearestName } from '../../src/config/key-names.js'
import { ERRORS } from '../../src/core/errors.js'
import { readOperations, type Operation } from '../support/api/api-document.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { LIMITS, type BoundInSchema } from './limits.js'
import { readClaims, type ClaimKind } from './read-claims.js'
import { readPlaces, type Place } from './read-contract.js'
import { NOT_BUILT, OWN_RULES, UNPROVOKED } from './table.js'

/** Classes of operations for answers that one test shows of many at once. */
const CLASSES: Readonly<Record<string, (operation: Operation) => boolean>> = {
  any: () => true,
  keyed: ({ needsKey }) => needsKey,
  permitted: operation => operation['x-permission'] !== undefined,
  naming: ({ pathParameters }) => pathParameters.length > 0,
  posting: ({ needsKey, method }) => needsKey && method === 'POST',
  bodied: ({ body }) => body !== undefined,
}

/** What opens the whole server with its HTTP listener. */
const OPENERS = /\b(openTestAppliance|openCampaigns|openFeeds|openSubmissionTest|openServer|initialise)\(/

const files = globSync('test/**/*.test.ts').map(file => {
  const text = readFileSync(file, 'utf8')
  return { ...readClaims(file, text), runsAppliance: OPENERS.test(text) }
})
const claims = files.flatMap(file => file.claims)

/** @returns what tests claim of this kind, each once */
function claimed(...kinds: readonly ClaimKind[]): Set<string> {
  return new Set(claims.filter(({ kind }) => kinds.includes(kind)).map(({ name }) => name))
}

/** Claims of names that do not exist, each with the file, the line and the nearest name that does. */
function unknownClaims(known: ReadonlySet<string>, ...kinds: readonly ClaimKind[]): string[] {
  return claims
    .filter(({ kind, name }) => kinds.includes(kind) && !known.has(name))
    .map(({ name, where }) => `${where}: unknown "${name}"; nearest: "${nearestName(name, known) ?? 'none'}"`)
}

/** Described by the appliance; names and paths as in the contract, without `/api/v1`. */
const operations: readonly Operation[] = await readOperations((await openTestAppliance(t)).baseUrl).then(
  all => all.map(operation => ({ ...operation, name: operation.name.replace(' /api/v1/', ' /') })),
)

/** Error answers that the operation describes, as `POST /email/send: no_content`. */
function describedAnswers({ name, responses }: Operation): string[] {
  return Object.entries(responses)
    .filter(([status]) => Number(status) >= 400)
    .flatMap(([, { content }]) => Object.keys(content['application/json']?.examples ?? {}))
    .map(code => `${name}: ${code}`)
}

t.test('comments that name rules stand directly above tests of the running appliance', t => {
  const elsewhere = files.filter(({ runsAppliance }) => !runsAppliance).flatMap(file => file.claims)
  t.same(
    [
      ...files.flatMap(({ faults }) => faults),
      ...elsewhere.map(({ where }) => `${where}: the file does not run the appliance`),
    ],
    [],
  )
  t.ok(claims.length > 500, `${claims.length} claims`)
  t.end()
})

t.test('a comment that is misspelt, unreadable or not above a test is reported', t => {
  const written = [
    '// proves: Email > to | subject; Errors > 400',
    '// answers: POST /email/send: no_content, domain_invalid; keyed: unauthorized',
    '// Any other comment: it may stand in between.',
    '// at and past limit: Limits > Subject length',
    "t.test('a mail is sent', async t => {",
    '  // operations: GET /email',
    '  t.ok(await send())',
    '})',
    '// proof: Email > to',
    '// proves: Email',
    '// answers: POST /email/send',
    "await t.test('another', async t => {})",
    '// proves: Email > to',
    '',
    "t.test('with a line between', async t => {})",
  ]
  const { claims, faults } = readClaims('a.test.ts', written.join('\n'))
  t.same(
    claims.map(({ kind, name, where }) => [kind, name, where]),
    [
      ['place', 'Email > to', 'a.test.ts:1'],
      ['place', 'Email > subject', 'a.test.ts:1'],
      ['place', 'Errors > 400', 'a.test.ts:1'],
      ['answer', 'POST /email/send: no_content', 'a.test.ts:2'],
      ['answer', 'POST /email/send: domain_invalid', 'a.test.ts:2'],
      ['answer', 'keyed: unauthorized', 'a.test.ts:2'],
      ['at', 'Limits > Subject length', 'a.test.ts:4'],
      ['past', 'Limits > Subject length', 'a.test.ts:4'],
    ],
  )
  t.same(faults, [
    'a.test.ts:6: not directly above a test',
    'a.test.ts:9: unknown keyword "proof"',
    'a.test.ts:10: "Email" cannot be read',
    'a.test.ts:11: "POST /email/send" cannot be read',
    'a.test.ts:13: not directly above a test',
  ])
  t.end()
})

t.test('every operation has a test', t => {
  const named = new Set([
    ...claimed('operation'),
    ...[...claimed('answer')].map(answer => answer.split(': ')[0]),
    ...Object.values(LIMITS).flatMap(bounds => bounds.map(({ operation }) => operation)),
  ])
  const places = [...claimed('place')].map(withoutParameterNames)
  const isNamed = ({ name, method, path }: Operation) => {
    const short = withoutParameterNames(path.replace(/^\/api\/v1/, ''))
    return (
      named.has(name) ||
      places.some(place => place.includes(method) && place.split(/[\s,;()]+/).includes(short))
    )
  }
  t.same(
    operations.filter(operation => !isNamed(operation)).map(({ name }) => name),
    [],
  )
  t.same(unknownClaims(new Set(operations.map(({ name }) => name)), 'operation'), [])
  t.end()
})

/** `/lists/:id` and `/lists/{id}` become `/lists/*`. */
function withoutParameterNames(text: string): string {
  return text.replace(/:\w+|\{\w+\}/g, '*')
}

t.test('every error that an operation describes has a test', t => {
  t.ok(operations.length > 25)
  const answers = claimed('answer')
  const isShown = (operation: Operation, answer: string) =>
    answers.has(answer) ||
    Object.entries(CLASSES).some(
      ([name, holds]) => holds(operation) && answers.has(answer.replace(operation.name, name)),
    )
  const missing = operations.flatMap(operation =>
    describedAnswers(operation).filter(answer => !isShown(operation, answer)),
  )
  t.same(
    missing.filter(answer => !(answer in UNPROVOKED)),
    [],
  )
  t.same(
    Object.keys(UNPROVOKED).filter(answer => !missing.includes(answer)),
    [],
    'excused answers are shown nowhere',
  )
  const known = new Set([
    ...operations.flatMap(describedAnswers),
    ...Object.keys(CLASSES).flatMap(name => Object.keys(ERRORS).map(code => `${name}: ${code}`)),
  ])
  t.same(unknownClaims(known, 'answer'), [], 'tests name only answers that some operation describes')
  t.end()
})

t.test('groups that are not built have no route', t => {
  const built = NOT_BUILT.flatMap(({ name, paths }) =>
    operations
      .filter(({ path }) => paths.some(prefix => path.startsWith(prefix)))
      .map(operation => `${operation.name} is built: the group "${name}" needs tests`),
  )
  t.same(built, [])
  t.end()
})

/** Codes that only the admin API uses, which is tested in `test/accounts/operators/`. */
const ADMIN_CODES = ['sign_in_required']

t.test('every code of the error table has a test', t => {
  const shown = new Set([...claimed('answer')].map(answer => answer.split(': ')[1]))
  const later = NOT_BUILT.flatMap(({ places }) => places)
  const missing = Object.keys(ERRORS).filter(
    code => !shown.has(code) && !ADMIN_CODES.includes(code) && !later.includes(`Errors > ${code}`),
  )
  t.same(missing, [])
  t.end()
})

t.test('every limit is tested on both sides', t => {
  const names = Object.keys(LIMITS)
  const [at, past] = [claimed('at'), claimed('past')]
  t.same(
    names.filter(name => !at.has(name) || !past.has(name)),
    [],
  )
  t.same(unknownClaims(new Set(names), 'at', 'past'), [])
  t.end()
})

t.test('the appliance describes the limits of the table, and every paged list has its own', t => {
  const bounds = Object.values(LIMITS).flat()
  t.same(
    bounds.filter(bound => readBound(bound) !== bound.value),
    [],
  )
  const listed = new Set(bounds.filter(({ field }) => field === 'limit').map(({ operation }) => operation))
  const paged = operations.filter(
    ({ path, parameters }) => path.startsWith('/api/') && parameters.some(({ name }) => name === 'limit'),
  )
  t.same(
    paged.map(({ name }) => name).filter(name => !listed.has(name)),
    [],
  )
  t.end()
})

/** The parts of a JSON Schema that hold bounds. */
interface Bounded extends Readonly<Record<string, unknown>> {
  readonly anyOf?: readonly Bounded[]
  readonly items?: Bounded
  readonly properties?: Readonly<Record<string, Bounded>>
}

function readBound({ operation, field, keyword }: BoundInSchema): unknown {
  const found = operations.find(({ name }) => name === operation)
  const parameter = found?.parameters.find(({ name }) => name === field)
  let schema = (parameter?.schema ?? found?.body?.schema) as Bounded | undefined
  if (!parameter) for (const name of field.split('.')) schema = (schema?.items ?? schema)?.properties?.[name]
  return [schema, ...(schema?.anyOf ?? [])].map(one => one?.[keyword]).find(value => value !== undefined)
}

t.test('every rule that no page states has a test', t => {
  t.same(
    OWN_RULES.filter(rule => !claimed('place').has(rule)),
    [],
  )
  t.end()
})

const CONTRACT = '../shared/interface-spec.md'
const DECISIONS = '../shared/decisions.md'
const isBeside = existsSync(CONTRACT) && existsSync(DECISIONS)

t.test(
  'every rule and every table row of the contract has a test',
  { skip: isBeside ? false : `${CONTRACT} is not beside the project` },
  t => {
    const places = [
      ...readPlaces(readFileSync(CONTRACT, 'utf8')),
      ...readPlaces(readFileSync(DECISIONS, 'utf8'), 'decisions: '),
    ]
    t.ok(places.length > 200, `${places.length} places`)
    const named = new Set([...claimed('place'), ...Object.keys(LIMITS)])
    t.same(
      places.filter(place => !named.has(place.name) && !isLater(place)).map(({ name }) => name),
      [],
    )
    const known = new Set(places.map(({ name }) => name))
    t.same(
      unknownClaims(new Set([...known, ...OWN_RULES]), 'place'),
      [],
      'every place that a test names exists',
    )
    t.same(
      [...Object.keys(LIMITS), ...NOT_BUILT.flatMap(one => one.places)].filter(
        name => !known.has(name) && !name.startsWith('Postroad > '),
      ),
      [],
      'every place that a table names exists',
    )
    t.same(
      [...new Set(places.filter(place => named.has(place.name) && isLater(place)).map(({ name }) => name))],
      [],
      'no place is both built and not built',
    )
    t.end()
  },
)

function isLater({ name, section }: Place): boolean {
  return NOT_BUILT.some(({ places, sections }) => sections.includes(section) || places.includes(name))
}
