/** Field types of answers, with their formats for client generators. Not for requests, whose fields accept more than one format. */
import Type, { type Static, type TSchema, type TSchemaOptions } from 'typebox'

/** ISO 8601 in UTC, e.g. `2026-01-05T10:00:00.000Z`. */
export const Moment = (remarks: TSchemaOptions = {}) => Type.String({ format: 'date-time', ...remarks })

export const MomentOrNull = (remarks: TSchemaOptions = {}) => orNull(Moment(), remarks)

/** UUIDv7. */
export const Id = (remarks: TSchemaOptions = {}) => Type.String({ format: 'uuid', ...remarks })

export const IdOrNull = (remarks: TSchemaOptions = {}) => orNull(Id(), remarks)

/** A bare address, its domain as A-labels in lower case. The format `email` excludes non-ASCII local parts, which mailboxes may have. */
export const Address = (remarks: TSchemaOptions = {}) => Type.String({ format: 'email', ...remarks })

export const TextOrNull = (remarks: TSchemaOptions = {}) => orNull(Type.String(), remarks)

export const IntegerOrNull = (remarks: TSchemaOptions = {}) => orNull(Type.Integer(), remarks)

/** Answer of a DELETE. */
export const Done = Type.Object({ success: Type.Literal(true) }, { title: 'Done' })

export const DONE: Static<typeof Done> = { success: true }

export function orNull<S extends TSchema>(schema: S, remarks: TSchemaOptions = {}) {
  return Type.Union([schema, Type.Null()], remarks)
}
