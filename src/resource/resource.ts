/**
 * A resource as the rest of the program sees it: one value that declares everything others need from its folder.
 *
 * Each folder exports one from its `resource.ts`, listed in `src/appliance/resources.ts`; `docs/hacking.md` adds one as an exercise.
 * Parts for the configuration and the API description are static; everything else is created by `open` from the parts it names.
 * Pure; holds no logic.
 */
import type { TObject } from 'typebox'
import type { LeaseName } from '../cluster/leases.js'
import type { Named } from '../config/config.js'
import type { KeptFor } from '../config/schema/schema.js'
import type { AnyConsumer } from '../events/consumer.js'
import type { Chapters } from '../http/openapi/chapters.js'
import type { OutgoingRequests } from '../http/openapi/outgoing.js'
import type { PublicRoute } from '../http/public/public-route.js'
import type { Route } from '../http/route.js'
import type { Job } from '../scheduler/scheduler.js'
import type { ReferenceHolder } from './references.js'
import type { Retention } from './retention.js'

/** An opened resource; absent fields mean none. */
export interface OpenResource {
  readonly routes?: readonly Route[]
  /** Public pages, served without a key. */
  readonly pages?: readonly PublicRoute[]
  /** Which lease its consumers and jobs need, where several nodes share the work; default `jobs`. */
  readonly lease?: LeaseName
  readonly consumers?: readonly AnyConsumer[]
  readonly jobs?: readonly Job[]
  readonly retention?: readonly Retention[]
  /**
   * Shuts down: starts nothing new, and pending requests end after their current step. Called while responses can still be sent, so
   * that waiting clients get one.
   */
  stop?(): Promise<void>
}

/** A section of the configuration used by this resource only. */
interface Section<Schema extends TObject> {
  /** Name in the file, e.g. `webhooks`. */
  readonly name: string
  /** Made by `table()` of `config/schema/fields.ts`. */
  readonly schema: Schema
}

/** @typeParam Parts what it needs from the composition root */
export interface ResourceSpec<Parts, Schema extends TObject> {
  /** Chapters it adds to the API description: name and summary. */
  readonly chapters?: Chapters
  /** Requests it sends to others, for the API description. */
  readonly outgoing?: OutgoingRequests
  /** Keys it adds to `[retention]`, in file order. */
  readonly kept?: Readonly<Record<string, KeptFor>>
  readonly section?: Section<Schema>
  /** Its references to lists, tags, segments, templates or automations. */
  readonly references?: ReferenceHolder
  /** @param settings its decoded section */
  readonly open: (parts: Parts, settings: Named<Schema>) => OpenResource
}

export interface Resource<Parts> extends Omit<ResourceSpec<Parts, TObject>, 'open'> {
  readonly open: (parts: Parts, settings: unknown) => OpenResource
}

export function resource<Parts, Schema extends TObject = TObject>(
  spec: ResourceSpec<Parts, Schema>,
): Resource<Parts> {
  // The composition root passes settings decoded by this same schema.
  return { ...spec, open: (parts, settings) => spec.open(parts, settings as Named<Schema>) }
}
