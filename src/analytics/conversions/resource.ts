import { retentionRule } from '../../resource/retention.js'
import { resource } from '../../resource/resource.js'
import { lastEngagement, deleteConversionsBefore, deleteProductViewsBefore } from './conversion-store.js'
import { conversionRoutes, type ConversionParts, productViewRoute } from './conversion-routes.js'

export const conversions = resource({
  chapters: { Conversions: 'Purchases and product views, attributed to emails.' },
  kept: {
    conversions: { default: '0', description: 'Conversions.' },
    product_views: { default: '90d', description: 'Product views.' },
  },
  open: (parts: Omit<ConversionParts, 'findAttribution'>) => ({
    routes: [...conversionRoutes({ ...parts, findAttribution: lastEngagement }), productViewRoute(parts)],
    retention: [
      retentionRule({ what: 'conversions', keep: ['conversions'] }, deleteConversionsBefore),
      retentionRule({ what: 'product views', keep: ['product_views'] }, deleteProductViewsBefore),
    ],
  }),
})
