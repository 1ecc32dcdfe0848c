/**
 * Holds the table "rule -> test" to the contract, to the running appliance and to the tests: whatever is added to one of
 * the three has to be added to the table, with a test that shows it over HTTP.
 *
 * The contract is read where it lies beside the project; elsewhere that part is skipped.
 */
import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'
import { ERRORS } from '../../src/core/errors.js'
import { readOperations, type Operation } from '../support/api/api-document.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { LIMITS } from './limits.js'
import { NOT_BUILT } from './not-built.js'
import { readPlaces, type Place } from './read-contract.js'
import { fold, readTestFile, type TestFile } from './read-tests.js'
import type { BoundInSchema, Row, TestName } from './row.js'
import { ROWS, UNPROVOKED } from './table.js'

/** Who is meant by an answer that a test shows of many operations at once. */
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

const testFiles = new Map<string, TestFile | undefined>()

function testFile(file: string): TestFile | undefined {
  const found = testFiles.has(file) ? testFiles.get(file) : readTestFile(file)
  testFiles.set(file, found)
  return found
}

function faultOfTest({ file, title, asserts }: TestName): string[] {
  const found = testFile(file)
  const asserted = found?.tests.get(title)
  if (!found) return [`there is no test/${file}.test.ts`]
  if (asserted === undefined) return [`${file} has no test "${title}"`]
  if (!found.runsAppliance) return [`${file} does not run the appliance`]
  return asserts
    .filter(text => !asserted.includes(fold(text)))
    .map(text => `"${title}" does not assert ${text}`)
}

/** What the row says is asserted, and none of its tests asserts. */
function faultsOfAssertions({ tests, answers = [], asserts = [] }: Row): string[] {
  const asserted = tests.map(({ file, title }) => testFile(file)?.tests.get(title) ?? '')
  const isAsserted = (text: string) => asserted.some(one => one.includes(fold(text)))
  const codes = answers.map(answer => answer.split(': ')[1] ?? answer)
  const isNamed = [...asserts, ...codes, ...tests.flatMap(test => test.asserts)].length > 0
  return [
    ...(tests.length === 0 || isNamed ? [] : ['names no assertion']),
    ...asserts.filter(text => !isAsserted(text)).map(text => `none of its tests asserts ${text}`),
    ...codes
      .filter(code => !isAsserted(`'${code}'`) && !isAsserted(`"${code}"`))
      .map(code => `none of its tests asserts ${code}`),
  ]
}

t.test(
  'every row and every limit names tests that there are, on the running appliance, and what they assert',
  async t => {
    t.same(repeated(ROWS.map(({ id }) => id)), [], 'ids are unique')
    const groups = new Set(NOT_BUILT.map(({ name }) => name))
    const faults = [
      ...ROWS.flatMap(row => faultsOfAssertions(row).map(fault => `${row.id}: ${fault}`)),
      ...ROWS.flatMap(({ id, tests, waitsFor }) => [
        ...tests.flatMap(faultOfTest).map(fault => `${id}: ${fault}`),
        ...(tests.length > 0 || waitsFor !== undefined ? [] : [`${id}: no test`]),
        ...(waitsFor === undefined || groups.has(waitsFor)
          ? []
          : [`${id}: waits for ${waitsFor}, which is built`]),
      ]),
      ...LIMITS.flatMap(({ name, at, past }) => [
        ...[...at, ...past].flatMap(faultOfTest).map(fault => `${name}: ${fault}`),
        ...(at.length > 0 && past.length > 0 ? [] : [`${name}: not tested on both sides`]),
        ...[...at, ...past]
          .filter(({ asserts }) => asserts.length === 0)
          .map(({ title }) => `${name}: names no assertion of "${title}"`),
      ]),
    ]
    t.same(faults, [])
  },
)

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
    'what is excused is not shown elsewhere',
  )
  const known = new Set([
    ...operations.flatMap(operation => describedCodes(operation).map(code => `${operation.name}: ${code}`)),
    ...Object.keys(CLASSES).flatMap(name => Object.keys(ERRORS).map(code => `${name}: ${code}`)),
  ])
  t.same(
    [...ANSWERS].filter(answer => !known.has(answer)),
    [],
    'rows tell of answers that there are',
  )
})

t.test('what is not built has no route', async t => {
  const operations = await operationsOf(t)
  const built = NOT_BUILT.flatMap(({ name, paths }) =>
    operations
      .filter(({ path }) => paths.some(prefix => path.startsWith(prefix)))
      .map(operation => `${operation.name} is built: the group "${name}" needs rows`),
  )
  t.same(built, [])
})

t.test('every code of the error table has a row', t => {
  const shown = new Set([...ANSWERS].map(answer => answer.split(': ')[1]))
  const later = NOT_BUILT.flatMap(({ places }) => places.filter(place => place.startsWith('Errors > ')))
  const missing = Object.keys(ERRORS).filter(code => !shown.has(code) && !later.includes(`Errors > ${code}`))
  t.same(missing, [])
  t.end()
})

t.test('the appliance describes the limits as the table has them, on every list there is', async t => {
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
      'what the table points to is there',
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
      'nothing is both built and not',
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
