/**
 * What a resource is to the rest of the appliance: one value that declares all that has to be known of it outside of its folder.
 *
 * A resource's folder exports one from its `resource.ts`, and `src/appliance/resources.ts` lists it; `src/ARCHITECTURE.md` says what else
 * adding one takes. What the configuration and the API's description need is there before anything is opened; the rest is made by
 * `open` of the parts that it names. Pure; holds no logic.
 */
import type { TObject } from 'typebox'
import type { Named } from '../config/named.js'
import type { KeptFor } from '../config/schema/schema-retention.js'
import type { AnyConsumer } from '../events/consumer.js'
import type { Chapters } from '../http/openapi/chapters.js'
import type { OutgoingRequests } from '../http/openapi/outgoing.js'
import type { PublicRoute } from '../http/public/public-route.js'
import type { Route } from '../http/route.js'
import type { Job } from '../scheduler/scheduler.js'
import type { ReferenceHolder } from './references.js'
import type { Retention } from './retention.js'

/** What an open resource does. Whatever it leaves out it has none of. */
export interface OpenResource {
  readonly routes?: readonly Route[]
  /** Public pages, which need no key. */
  readonly pages?: readonly PublicRoute[]
  readonly consumers?: readonly AnyConsumer[]
  readonly jobs?: readonly Job[]
  readonly retention?: readonly Retention[]
  /**
   * The appliance stops: what requests have begun and others wait for ends after the step in hand, nothing new begins. Called
   * while requests are still answered, so that whoever waits is told.
   */
  stop?(): Promise<void>
}

/** A section of the configuration that is this resource's alone. */
interface Section<Schema extends TObject> {
  /** As in the file, e.g. `webhooks`. */
  readonly name: string
  /** Made by `table()` of `config/schema/fields.ts`. */
  readonly schema: Schema
}

/** @typeParam Parts what it takes of the composition root, and no more */
export interface ResourceSpec<Parts, Schema extends TObject> {
  /** Chapters of the API's description that it opens: name and what is in it. */
  readonly chapters?: Chapters
  /** Requests that it sends to others, for the API's description. */
  readonly outgoing?: OutgoingRequests
  /** Keys of `[retention]` that it adds, in the order of the file. */
  readonly kept?: Readonly<Record<string, KeptFor>>
  readonly section?: Section<Schema>
  /** Where it refers to lists, tags, segments, templates or automations. */
  readonly references?: ReferenceHolder
  /** @param settings its section, as `Config` has others */
  readonly open: (parts: Parts, settings: Named<Schema>) => OpenResource
}

export interface Resource<Parts> extends Omit<ResourceSpec<Parts, TObject>, 'open'> {
  readonly open: (parts: Parts, settings: unknown) => OpenResource
}

export function resource<Parts, Schema extends TObject = TObject>(
  spec: ResourceSpec<Parts, Schema>,
): Resource<Parts> {
  // The root hands it what was decoded by the schema that stands beside it.
  return { ...spec, open: (parts, settings) => spec.open(parts, settings as Named<Schema>) }
}
