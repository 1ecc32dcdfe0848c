/**
 * Validates large bodies in steps that yield to the event loop: first the frame, then list entries and free-form fields.
 *
 * Called by `app.ts` for bodies that `body.ts` classifies as large. Gives the same result as `route.ts` for small bodies, including the
 * treatment of null. Reports errors of the frame first, then of the first invalid entry. Fails: AppError validation_error.
 */
import Type, { type TSchema } from 'typebox'
import type { LoopShare } from '../world/time/loop-share.js'
import { absentWhereNull } from './absent-fields.js'
import { placedValidator, validator } from './validate.js'

/** Entries checked per step; each may be as large as a small body, but rarely is. */
const ENTRIES_AT_ONCE = 8
/** Client-named fields checked per step. */
const FIELDS_AT_ONCE = 1_000

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, TSchema>>
  /** Present if clients name the fields, e.g. template_data. */
  readonly patternProperties?: object
}

interface ListSchema extends TSchema {
  readonly type?: string
  readonly items?: TSchema
}

export type ValidateLarge = (value: unknown, loop: LoopShare) => Promise<unknown>

/** Compiles on first use. @param whole name for errors that concern no single field */
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

/** The object's own schema, without its fields. */
function looseRecord(field: TSchema | undefined): TSchema {
  const { patternProperties: _fields, ...own } = field as TSchema & ObjectSchema
  return own
}

/** Checks the object part by part. */
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
