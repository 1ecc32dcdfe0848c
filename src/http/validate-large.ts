/**
 * Checks a body that takes long to walk over: first its frame, then the entries of its lists one after the other, with turns for
 * others in between.
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

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, TSchema>>
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
  const framed = lists.map(({ name, field }) => [name, { ...field, items: Type.Unknown() }] as const)
  const frame = { ...schema, properties: { ...properties, ...Object.fromEntries(framed) } } as TSchema
  const [withoutNulls, checkFrame] = [absentWhereNull(frame), validator(frame, whole)]
  return async (given, loop) => {
    const value = (await loop.run(() => checkFrame(withoutNulls(given)))) as Record<
      string,
      unknown[] | undefined
    >
    const read: Record<string, unknown[]> = {}
    for (const { name, readEntry } of lists) {
      const entries = value[name]
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

function entryReader(items: TSchema, whole: string) {
  const [withoutNulls, check] = [absentWhereNull(items), placedValidator(items, whole)]
  return (entry: unknown, place: readonly string[]): unknown => check(withoutNulls(entry), place)
}
