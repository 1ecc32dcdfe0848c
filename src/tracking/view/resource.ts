/** A mail in the browser, for whoever cannot read it where it came. */
import { resource } from '../../resource/resource.js'
import { viewPage, type ViewParts } from './view-page.js'

export const mailViews = resource({
  open: (parts: ViewParts) => ({ pages: [viewPage(parts)] }),
})
