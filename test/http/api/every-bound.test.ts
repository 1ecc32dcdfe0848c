/**
 * Every bound that the running appliance describes of a request: one past it is a 400 that names the field, and as much as
 * it allows is not refused for it. Bounds are found in the appliance's own description.
 */
import t from 'tap'
import { ask, readOperations, usualRequest, type Operation } from '../../support/api/api-document.js'
import { openTestAppliance } from '../../support/program/appliance.js'

/** The parts of a JSON Schema that bound a value. */
interface Bounded {
  readonly type?: string
  readonly maxLength?: number
  readonly minLength?: number
  readonly maxItems?: number
  readonly minItems?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly anyOf?: readonly Bounded[]
  readonly items?: Bounded
  readonly properties?: Readonly<Record<string, Bounded>>
  readonly required?: readonly string[]
}

interface Case {
  /** Dotted, entries of a list by number. */
  readonly path: string
  readonly place: readonly (string | number)[]
  readonly rule: string
  readonly atBound: unknown
  readonly past: unknown
}

const MADE_UP = '0192f000-0000-7000-8000-00000000abcd'
const madeUp = (name: string) => (name === 'email' ? 'nobody@nowhere.example' : MADE_UP)

/** Whatever the schema is, as small as it may be. */
function smallest(schema: Bounded | undefined): unknown {
  const { type, anyOf, properties = {}, required = [], minLength = 0, minItems = 0 } = schema ?? {}
  if (anyOf) return smallest(anyOf[0])
  if (type === 'string') return 'x'.repeat(minLength)
  if (type === 'array') return Array.from({ length: minItems }, () => smallest(schema?.items))
  if (type === 'object') return Object.fromEntries(required.map(name => [name, smallest(properties[name])]))
  return type === 'boolean' ? true : 0
}

/** Which of the alternatives applies another field decides, or the automation that is named: see `automations/`. */
const CHOSEN_BY_TYPE = new Set<unknown>(['config', 'trigger_config'])

function casesOf(schema: Bounded, place: readonly (string | number)[] = []): Case[] {
  if (CHOSEN_BY_TYPE.has(place.at(-1))) return []
  const of = (rule: string, atBound: unknown, past: unknown): Case => ({
    path: place.join('.'),
    place,
    rule,
    atBound,
    past,
  })
  const { maxLength, minLength, maxItems, minItems, minimum, maximum, items, anyOf, properties } = schema
  const list = (length: number) => Array.from({ length }, () => smallest(items))
  return [
    ...(maxLength === undefined ? [] : [of('maxLength', 'x'.repeat(maxLength), 'x'.repeat(maxLength + 1))]),
    ...(minLength === undefined ? [] : [of('minLength', 'x'.repeat(minLength), 'x'.repeat(minLength - 1))]),
    ...(maxItems === undefined ? [] : [of('maxItems', list(maxItems), list(maxItems + 1))]),
    ...(minItems === undefined ? [] : [of('minItems', list(minItems), list(minItems - 1))]),
    ...(minimum === undefined ? [] : [of('minimum', minimum, minimum - 1)]),
    ...(maximum === undefined ? [] : [of('maximum', maximum, maximum + 1)]),
    ...(anyOf ?? []).flatMap(one => casesOf(one, place)),
    ...(items ? casesOf(items, [...place, 0]) : []),
    ...Object.entries(properties ?? {}).flatMap(([name, one]) => casesOf(one, [...place, name])),
  ]
}

/** The example with the value in its place; what stands on the way and is missing is made. */
function withValue(whole: unknown, schema: Bounded, [name, ...rest]: Case['place'], value: unknown): unknown {
  if (name === undefined) return value
  const fits = [schema, ...(schema.anyOf ?? [])].find(one =>
    typeof name === 'number' ? one.items : one.properties,
  )
  const inner = typeof name === 'number' ? fits?.items : fits?.properties?.[name]
  if (typeof name === 'number') {
    const [first] = Array.isArray(whole) ? (whole as unknown[]) : []
    return [withValue(first ?? smallest(inner), inner ?? {}, rest, value)]
  }
  const fields = (typeof whole === 'object' && !Array.isArray(whole) ? whole : smallest(fits)) as Record<
    string,
    unknown
  >
  return { ...fields, [name]: withValue(fields[name], inner ?? {}, rest, value) }
}

// proves: Errors > validation_error
t.test(
  'one past each bound of a body is a 400 that names the field; the bound itself is not refused',
  async t => {
    const { baseUrl, log, ...postroad } = await openTestAppliance(t)
    const key = await postroad.makeKey()
    const operations = (await readOperations(baseUrl)).filter(({ body, needsKey }) => body && needsKey)
    let checked = 0
    for (const operation of operations)
      for (const one of casesOf(operation.body?.schema as Bounded)) {
        checked += 1
        const name = `${operation.name} ${one.path} ${one.rule}`
        const past = await askWith(baseUrl, operation, one, one.past, key)
        t.match(past, { status: 400, error: { code: 'validation_error', path: one.path } }, `${name}: past`)
        const { status, error } = await askWith(baseUrl, operation, one, one.atBound, key)
        t.ok(status < 500, name)
        if (error?.path === one.path) t.notMatch(error.message, BOUND_MESSAGE, `${name}: at`)
      }
    t.ok(checked > 50, `${checked} bounds`)
    t.same(
      log.lines.filter(({ level }) => level === 'error'),
      [],
    )
  },
)

let asked = 0

/** How a limit is described. */
const BOUND_MESSAGE = /must have at (most|least)|must not be empty|must be [<>]=/

async function askWith(baseUrl: string, operation: Operation, { place }: Case, value: unknown, key: string) {
  const usual = usualRequest(operation, madeUp, key)
  const body = withValue(operation.body?.example, operation.body?.schema as Bounded, place, value)
  // A unique key, if the operation takes one: no request is a repeat.
  const { 'Idempotency-Key': taken, ...others } = usual.headers ?? {}
  const headers = taken === undefined ? others : { ...others, 'Idempotency-Key': `bound ${(asked += 1)}` }
  const { status, text } = await ask(baseUrl, { ...usual, headers, body: JSON.stringify(body) })
  const { error } = JSON.parse(text) as { error?: { path?: string; message: string } }
  return { status, error }
}
