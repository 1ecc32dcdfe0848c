/**
 * Checks a body that takes long to walk over: first its frame, then the entries of its lists and of what clients fill as they
 * like, a few at a time, with turns for others in between.
 *
 * Called by `app.ts` for what `body.ts` calls large. Takes and refuses what `route.ts` does with a small one, null as absent included; of several faults that of the frame
 * is told first, then that of the first entry. Fails: AppError validation_error.
 */
import Type, { type TSchema } from 'typebox'
import type { LoopShare } from '../world/time/loop-share.js'
import { absentWhereNull } from './absent-fields.js'
import { placedValidator, validator } from './validate.js'

/** Entries checked at once: each may hold what a small body may, but hardly ever does. */
const ENTRIES_AT_ONCE = 8
/** The same for fields with names of the client's own. */
const FIELDS_AT_ONCE = 1_000

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, TSchema>>
  /** Of an object whose fields the client names, e.g. template_data. */
  readonly patternProperties?: object
}

interface ListSchema extends TSchema {
  readonly type?: string
  readonly items?: TSchema
}

export type ValidateLarge = (value: unknown, loop: LoopShare) => Promise<unknown>

/** Compiled when it is first needed. @param whole what a fault of no field is called by */
export function largeValidator(schema: TSchema, whole: string): ValidateLarge {
  let validate: ValidateLarge | undefined
  return (value, loop) => (validate ??= compile(schema, whole))(value, loop)
}

function compile(schema: TSchema, whole: string): ValidateLarge {
  const { properties = {} } = schema as ObjectSchema
  const lists = Object.entries(properties).flatMap(([name, field]) => {
    const { type, items } = field as ListSchema
    return type === 'array' && items ? [{ name, field, readEntry: entryReader(items, whole) }] : []
  })
  const records = Object.entries(properties).flatMap(([name, field]) => {
    const { patternProperties } = field as ObjectSchema
    return patternProperties
      ? [{ name, check: placedValidator({ type: 'object', patternProperties }, whole) }]
      : []
  })
  const framed = lists.map(({ name, field }) => [name, { ...field, items: Type.Unknown() }] as const)
  const loose = records.map(({ name }) => [name, looseRecord(properties[name])] as const)
  const frame = {
    ...schema,
    properties: { ...properties, ...Object.fromEntries([...framed, ...loose]) },
  } as TSchema
  const [withoutNulls, checkFrame] = [absentWhereNull(frame), validator(frame, whole)]
  return async (given, loop) => {
    const value = (await loop.run(() => checkFrame(withoutNulls(given)))) as Record<string, unknown>
    for (const { name, check } of records) await checkFields(value[name], part => check(part, [name]), loop)
    const read: Record<string, unknown[]> = {}
    for (const { name, readEntry } of lists) {
      const entries = value[name] as readonly unknown[] | undefined
      if (!entries) continue
      const ofList: unknown[] = (read[name] = [])
      for (let from = 0; from < entries.length; from += ENTRIES_AT_ONCE)
        await loop.run(() => {
          for (const entry of entries.slice(from, from + ENTRIES_AT_ONCE))
            ofList.push(readEntry(entry, [name, String(ofList.length)]))
        })
    }
    return { ...value, ...read }
  }
}

/** Says of the object what it says, and nothing of its fields. */
function looseRecord(field: TSchema | undefined): TSchema {
  const { patternProperties: _fields, ...own } = field as TSchema & ObjectSchema
  return own
}

/** Hands on a part of the object at a time. */
async function checkFields(
  object: unknown,
  check: (part: object) => unknown,
  loop: LoopShare,
): Promise<void> {
  const fields = Object.entries(object ?? {})
  for (let from = 0; from < fields.length; from += FIELDS_AT_ONCE)
    await loop.run(() => check(Object.fromEntries(fields.slice(from, from + FIELDS_AT_ONCE))))
}

function entryReader(items: TSchema, whole: string) {
  const [withoutNulls, check] = [absentWhereNull(items), placedValidator(items, whole)]
  return (entry: unknown, place: readonly string[]): unknown => check(withoutNulls(entry), place)
}
