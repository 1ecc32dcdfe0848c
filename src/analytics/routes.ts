/** All routes of analytics, for the composition root. */
import type { Route } from '../http/route.js'
import { conversionRoutes, type ConversionParts } from './conversion-routes.js'
import { productViewRoute, type ProductViewParts } from './product-view-route.js'
import { reportRoute } from './report-route.js'

export type AnalyticsParts = ConversionParts & ProductViewParts

export function analyticsRoutes(parts: AnalyticsParts): Route[] {
  return [
    reportRoute(parts.database.reader, parts.clock),
    ...conversionRoutes(parts),
    productViewRoute(parts),
  ]
}
