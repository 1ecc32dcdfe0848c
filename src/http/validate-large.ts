/**
 * Checks a body that takes long to walk over: first its frame, then the entries of its lists one after the other, with turns for
 * others in between.
 *
 * Called by `app.ts` for what `body.ts` calls large. Takes and refuses what `validate.ts` does; of several faults that of the frame
 * is told first, then that of the first entry. Fails: AppError validation_error.
 */
import Type, { type TSchema } from 'typebox'
import type { LoopShare } from '../world/loop-share.js'
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
    return type === 'array' && items ? [{ name, field, checkEntry: placedValidator(items, whole) }] : []
  })
  const framed = lists.map(({ name, field }) => [name, { ...field, items: Type.Unknown() }] as const)
  const frame = { ...schema, properties: { ...properties, ...Object.fromEntries(framed) } } as TSchema
  const checkFrame = validator(frame, whole)
  return async (value, loop) => {
    await loop.run(() => checkFrame(value))
    for (const { name, checkEntry } of lists) {
      const entries = (value as Record<string, unknown[] | undefined>)[name] ?? []
      for (let from = 0; from < entries.length; from += ENTRIES_AT_ONCE)
        await loop.run(() =>
          entries
            .slice(from, from + ENTRIES_AT_ONCE)
            .forEach((entry, at) => checkEntry(entry, [name, String(from + at)])),
        )
    }
    return value
  }
}
