/**
 * The chapters of the API's description: what a reader finds operations under, and a client generator makes groups of.
 *
 * A resource declares those that it opens, and a route names the one it stands in; their order is that of the resources.
 */

/** Name, and a sentence on what is in it. */
export type Chapters = Readonly<Record<string, string>>
