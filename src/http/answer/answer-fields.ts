/**
 * Fields that answers are made of, each with its form, so that a client generator and a reader know it.
 *
 * For schemas of answers only. Requests are taken in more forms than one: their fields say so themselves.
 */
import Type, { type TSchema, type TSchemaOptions } from 'typebox'

/** ISO 8601 in UTC, e.g. `2026-01-05T10:00:00.000Z`. */
export const Moment = (remarks: TSchemaOptions = {}) => Type.String({ format: 'date-time', ...remarks })

export const MomentOrNull = (remarks: TSchemaOptions = {}) => orNull(Moment(), remarks)

/** UUIDv7. */
export const Id = (remarks: TSchemaOptions = {}) => Type.String({ format: 'uuid', ...remarks })

export const IdOrNull = (remarks: TSchemaOptions = {}) => orNull(Id(), remarks)

/** Bare, the domain as A-labels in lower case. The format `email` allows no non-ASCII local part, which mailboxes may have. */
export const Address = (remarks: TSchemaOptions = {}) => Type.String({ format: 'email', ...remarks })

export const TextOrNull = (remarks: TSchemaOptions = {}) => orNull(Type.String(), remarks)

export const IntegerOrNull = (remarks: TSchemaOptions = {}) => orNull(Type.Integer(), remarks)

/** What a DELETE answers. */
export const Done = Type.Object({ success: Type.Literal(true) }, { title: 'Done' })

export function orNull<S extends TSchema>(schema: S, remarks: TSchemaOptions = {}) {
  return Type.Union([schema, Type.Null()], remarks)
}
