/**
 * Keeps the table "rule -> test" complete: every rule of the contract, every operation, error and limit of the running appliance
 * has a row that names a test, and every test named exists and runs over HTTP.
 *
 * The contract is read if it lies beside the project; otherwise that part is skipped.
 */
import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'
import { ERRORS } from '../../src/core/errors.js'
import { readOperations, type Operation } from '../support/api/api-document.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { LIMITS } from './limits.js'
import { readPlaces, type Place } from './read-contract.js'
import type { BoundInSchema, TestName } from './row.js'
import { findTestFile } from './test-titles.js'
import { NOT_BUILT, ROWS, UNPROVOKED } from './table.js'

/** Classes of operations for answers that one test shows of many at once. */
const CLASSES: Readonly<Record<string, (operation: Operation) => boolean>> = {
  any: () => true,
  keyed: ({ needsKey }) => needsKey,
  permitted: operation => operation['x-permission'] !== undefined,
  naming: ({ pathParameters }) => pathParameters.length > 0,
  posting: ({ needsKey, method }) => needsKey && method === 'POST',
  bodied: ({ body }) => body !== undefined,
}

const ANSWERS = new Set(ROWS.flatMap(({ answers = [] }) => answers))

/** @returns the error answers that the operation describes, as `code` */
function describedCodes({ responses }: Operation): string[] {
  return Object.entries(responses)
    .filter(([status]) => Number(status) >= 400)
    .flatMap(([, { content }]) => Object.keys(content['application/json']?.examples ?? {}))
}

function isShown(operation: Operation, code: string): boolean {
  return (
    ANSWERS.has(`${operation.name}: ${code}`) ||
    Object.entries(CLASSES).some(([name, holds]) => ANSWERS.has(`${name}: ${code}`) && holds(operation))
  )
}

async function operationsOf(t: Parameters<typeof openTestAppliance>[0]): Promise<Operation[]> {
  return readOperations((await openTestAppliance(t)).baseUrl)
}

function faultOfTest({ file, title }: TestName): string[] {
  const found = findTestFile(file)
  if (!found) return [`test/${file}.test.ts does not exist`]
  if (!found.titles.has(title)) return [`${file} has no test "${title}"`]
  return found.runsAppliance ? [] : [`${file} does not run the appliance`]
}

t.test('every row and every limit names existing tests of the running appliance', t => {
  t.same(repeated(ROWS.map(({ rule }) => rule)), [], 'rules are unique')
  const groups = new Set(NOT_BUILT.map(({ name }) => name))
  const faults = [
    ...ROWS.flatMap(({ rule, tests, waitsFor }) => [
      ...tests.flatMap(faultOfTest).map(fault => `${rule}: ${fault}`),
      ...(tests.length > 0 || waitsFor !== undefined ? [] : [`${rule}: no test`]),
      ...(waitsFor === undefined || groups.has(waitsFor)
        ? []
        : [`${rule}: waits for ${waitsFor}, which is built`]),
    ]),
    ...LIMITS.flatMap(({ name, at, past }) => [
      ...[...at, ...past].flatMap(faultOfTest).map(fault => `${name}: ${fault}`),
      ...(at.length > 0 && past.length > 0 ? [] : [`${name}: not tested on both sides`]),
    ]),
  ]
  t.same(faults, [])
  t.end()
})

t.test('every operation has a row', async t => {
  const named = new Set([
    ...[...ANSWERS].map(answer => answer.split(': ')[0] ?? ''),
    ...LIMITS.flatMap(({ schema = [] }) => schema.map(({ operation }) => operation)),
  ])
  const texts = ROWS.flatMap(({ rule, from }) => [rule, ...from]).map(withoutParameterNames)
  const isNamed = ({ name, method, path }: Operation) => {
    const short = withoutParameterNames(path.replace(/^\/api\/v1/, ''))
    return (
      named.has(name) || texts.some(text => text.includes(method) && text.split(/[\s,;()]+/).includes(short))
    )
  }
  t.same(
    (await operationsOf(t)).filter(operation => !isNamed(operation)).map(({ name }) => name),
    [],
  )
})

/** `/lists/:id` and `/lists/{id}` become `/lists/*`. */
function withoutParameterNames(text: string): string {
  return text.replace(/:\w+|\{\w+\}/g, '*')
}

t.test('every error that an operation describes has a row', async t => {
  const operations = await operationsOf(t)
  t.ok(operations.length > 25)
  const missing = operations.flatMap(operation =>
    describedCodes(operation)
      .filter(code => !isShown(operation, code))
      .map(code => `${operation.name}: ${code}`),
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
    ...operations.flatMap(operation => describedCodes(operation).map(code => `${operation.name}: ${code}`)),
    ...Object.keys(CLASSES).flatMap(name => Object.keys(ERRORS).map(code => `${name}: ${code}`)),
  ])
  t.same(
    [...ANSWERS].filter(answer => !known.has(answer)),
    [],
    'rows name only answers that some operation describes',
  )
})

t.test('groups that are not built have no route', async t => {
  const operations = await operationsOf(t)
  const built = NOT_BUILT.flatMap(({ name, paths }) =>
    operations
      .filter(({ path }) => paths.some(prefix => path.startsWith(prefix)))
      .map(operation => `${operation.name} is built: the group "${name}" needs rows`),
  )
  t.same(built, [])
})

/** Codes that only the admin API uses, which is tested in `test/accounts/operators/`. */
const ADMIN_CODES = ['sign_in_required']

t.test('every code of the error table has a row', t => {
  const shown = new Set([...ANSWERS].map(answer => answer.split(': ')[1]))
  const later = NOT_BUILT.flatMap(({ places }) => places.filter(place => place.startsWith('Errors > ')))
  const missing = Object.keys(ERRORS).filter(
    code => !shown.has(code) && !ADMIN_CODES.includes(code) && !later.includes(`Errors > ${code}`),
  )
  t.same(missing, [])
  t.end()
})

t.test('the appliance describes the limits of the table, and every paged list has its own', async t => {
  const operations = await operationsOf(t)
  const bounds = LIMITS.flatMap(({ schema = [] }) => schema)
  t.same(
    bounds.filter(bound => readBound(operations, bound) !== bound.value),
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
})

/** The parts of a JSON Schema that hold bounds. */
interface Bounded extends Readonly<Record<string, unknown>> {
  readonly anyOf?: readonly Bounded[]
  readonly items?: Bounded
  readonly properties?: Readonly<Record<string, Bounded>>
}

function readBound(operations: readonly Operation[], { operation, field, keyword }: BoundInSchema): unknown {
  const found = operations.find(({ name }) => name === operation)
  const parameter = found?.parameters.find(({ name }) => name === field)
  let schema = (parameter?.schema ?? found?.body?.schema) as Bounded | undefined
  if (!parameter) for (const name of field.split('.')) schema = (schema?.items ?? schema)?.properties?.[name]
  return [schema, ...(schema?.anyOf ?? [])].map(one => one?.[keyword]).find(value => value !== undefined)
}

const CONTRACT = '../shared/interface-spec.md'
const DECISIONS = '../shared/decisions.md'
const isBeside = existsSync(CONTRACT) && existsSync(DECISIONS)

t.test(
  'every rule and every table row of the contract has a row',
  { skip: isBeside ? false : `${CONTRACT} is not beside the project` },
  async t => {
    const places = [
      ...readPlaces(readFileSync(CONTRACT, 'utf8')),
      ...readPlaces(readFileSync(DECISIONS, 'utf8'), 'decisions: '),
    ]
    t.ok(places.length > 200, `${places.length} places`)
    const named = new Set([...ROWS.flatMap(({ from }) => from), ...LIMITS.map(({ name }) => name)])
    t.same(
      places.filter(place => !named.has(place.name) && !isLater(place)).map(({ name }) => name),
      [],
    )
    const known = new Set(places.map(({ name }) => name))
    const pointing = [...named, ...NOT_BUILT.flatMap(one => one.places)].filter(name => name.includes(' > '))
    t.same(
      pointing.filter(name => !known.has(name)),
      [],
      'every place the table names exists',
    )
    t.same(
      [
        ...new Set(
          places
            .filter(({ name, section }) => named.has(name) && isLaterSection(section))
            .map(({ name }) => name),
        ),
      ],
      [],
      'no place is both built and not built',
    )
  },
)

function isLater({ name, section }: Place): boolean {
  return isLaterSection(section) || NOT_BUILT.some(({ places }) => places.includes(name))
}

function isLaterSection(section: string): boolean {
  return NOT_BUILT.some(({ sections }) => sections.includes(section))
}

function repeated(names: readonly string[]): string[] {
  return names.filter((name, at) => names.indexOf(name) !== at)
}
