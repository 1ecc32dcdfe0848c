/**
 * Features of HTML and CSS that some mail client lacks: data of caniemail.com of 2026-05-13.
 *
 * Under the MIT licence (`packaging/licences/caniemail.txt`). Written by `test/content/write-client-features.ts`; do not edit.
 *
 * A line is slug, support, signs and name. Support has a letter for each of `MAIL_CLIENTS`: y (yes), a (in part), n (no), u (unknown).
 * Signs are property (p), value (v), function (f), at-rule (@), media feature (m), selector (s), unit (u), element (e), attribute (a) and
 * image format (i).
 */
export const FEATURE_TABLE = `
css-accent-color|nynnnnnuyu|p:accent-color|accent-color
css-align-items|nynyyynyyn|p:align-items|align-items
css-animation|nynnnnnnyn|p:animation|animation
css-aspect-ratio|nynnnnnnnn|p:aspect-ratio|aspect-ratio
css-at-font-face|nyannnnyyn|@:font-face|@font-face
css-at-import|nyynnnnnnn|@:import|@import
css-at-keyframes|nynnnnayyn|@:keyframes|@keyframes
css-at-media-device-pixel-ratio|nynyyynnyn|m:-webkit-device-pixel-ratio|@media (-webkit-device-pixel-ratio)
css-at-media-hover|nynyyynuyu|m:hover m:any-hover|@media (hover), @media (any-hover)
css-at-media-orientation|aanyyynnyy|m:orientation|@media (orientation)
css-at-media-prefers-color-scheme|nynyyynnyn|m:prefers-color-scheme|@media (prefers-color-scheme)
css-at-media-prefers-reduced-motion|nynyyynnyn|m:prefers-reduced-motion|@media (prefers-reduced-motion)
css-at-media|aynaaaanay|@:media|@media
css-at-supports|nynnnnynyn|@:supports|@supports
css-backdrop-filter|nynynnnuyn|p:backdrop-filter|backdrop-filter
css-background-blend-mode|aynyyynyyn|p:background-blend-mode|background-blend-mode
css-background-clip|aynyyynyyn|p:background-clip|background-clip
css-background-image|yynyyyayya|p:background-image|background-image
css-background-origin|aynyyynyyn|p:background-origin|background-origin
css-background-position|yynyyyyyya|p:background-position|background-position
css-background-repeat|yynyyyyyya|p:background-repeat|background-repeat
css-background-size|aynyyyyyyn|p:background-size|background-size
css-block-inline-size|nynnnnnyyn|p:block-size p:inline-size|block-size & inline-size
css-border-image|nynnnnnyyn|p:border-image|border-image
css-border-inline-block-individual|nannnnnuan|p:border-inline-start p:border-inline-end p:border-block-start p:border-block-end|border-inline & border-block individual logical properties
css-border-inline-block-longhand|nynnnnnuyn|p:border-inline-color p:border-inline-style p:border-inline-width p:border-block-color p:border-block-style p:border-block-width|border-inline & border-block longhand properties
css-border-inline-block|nannnnnunn|p:border-inline p:border-block|border-inline & border-block
css-border-radius-logical|nannnnnunu|p:border-start-start-radius p:border-start-end-radius p:border-end-start-radius p:border-end-end-radius|border-radius logical properties
css-border-radius|yynyyyayyn|p:border-radius|border-radius
css-border-spacing|yynnyyyyyy|p:border-spacing|border-spacing
css-box-shadow|aynyyynyyn|p:box-shadow|box-shadow
css-box-sizing|yynyyynyyy|p:box-sizing|box-sizing
css-caption-side|yynyyyyyyy|p:caption-side|caption-side
css-clear|aynuayauya|p:clear|clear
css-clip-path|nynnnnnyyn|p:clip-path|clip-path
css-color-scheme|nynnnnnyyn|p:color-scheme|color-scheme CSS property
css-column-count|yynyyynyyn|p:column-count|column-count
css-column-layout-properties|yynyyynyyu|p:columns p:column-width p:column-rule p:column-span p:column-fill|css column properties
css-conic-gradient|nynnnnnyau|f:conic-gradient|conic-gradient()
css-cursor|naunnnayua|p:cursor|cursor
css-display-flex|aynyyyyyyn|v:display=flex|display:flex
css-display-grid|aynyyyyyyn|v:display=grid|display:grid
css-empty-cells|yynyyyauyu|p:empty-cells|empty-cells
css-filter|nynnnnnyyn|p:filter|filter
css-flex-direction|nynyaynyyn|v:flex-direction=column|flex-direction:column
css-flex-wrap|nynyyynyyn|v:flex-wrap=wrap|flex-wrap: wrap
css-float|aynyyyayya|p:float|float
css-font-kerning|yynyyynyyn|p:font-kerning|font-kerning
css-font-size-adjust|aynyyyayua|p:font-size-adjust|font-size-adjust
css-font-stretch|aynyaynynu|p:font-stretch|font-stretch
css-function-clamp|aynnnnnyan|f:clamp|clamp()
css-function-light-dark|nynnnnnyan|f:light-dark|light-dark()
css-function-max|aynnnnnyan|f:max|max()
css-function-min|aynnnnnyan|f:min|min()
css-gap|aynaaanyyn|p:gap p:column-gap p:row-gap|gap, column-gap, row-gap
css-grid-template|nynnnnnyyn|p:grid-template p:grid-template-columns p:grid-template-rows p:grid-template-areas|grid-template-* properties
css-height|yyayyynyyy|p:height|height property
css-hyphenate-character|nynnnnnuyn|p:hyphenate-character|hyphenate-character
css-hyphenate-limit-chars|nnnnnnnnnn|p:hyphenate-limit-chars|hyphenate-limit-chars
css-hyphens|nynnnnnuyu|p:hyphens|hyphens
css-inert-attribute|nynnnnnuyu|a:inert|inert
css-inline-size|nnnnnnnyyn|p:inline-size|inline-size
css-inset|nynnnnnynn|p:inset|inset
css-justify-content|nynyyynyyn|p:justify-content|justify-content
css-left-right-top-bottom|nynyyynyay|p:left p:right p:top p:bottom|left, right, top, bottom
css-linear-gradient|aynnnnnyan|f:linear-gradient|linear-gradient()
css-list-style-image|nynnnnnyyy|p:list-style-image|list-style-image
css-list-style-position|yynyyyyyyy|p:list-style-position|list-style-position
css-margin-block-start-end|nannnnnuyn|p:margin-block-start p:margin-block-end|margin-block-start & margin-block-end
css-margin-inline-block|nannnnnynn|p:margin-inline p:margin-block|margin-inline & margin-block
css-margin-inline-start-end|nannnnnuyn|p:margin-inline-start p:margin-inline-end|margin-inline-start & margin-inline-end
css-mask-image|nynynnnuyn|p:mask-image|mask-image
css-max-block-size|nynnannuyu|p:max-block-size|max-block-size
css-max-height|yynyyyyyyy|p:max-height|max-height property
css-max-inline-size|nynnnnnuyn|p:max-inline-size|max-inline-size
css-min-block-size|nynnnnnuyn|p:min-block-size|min-block-size
css-min-height|yynyyyyyyy|p:min-height|min-height property
css-min-inline-size|nynnannuyu|p:min-inline-size|min-inline-size
css-min-width|yynyyyyyyy|p:min-width|min-width property
css-mix-blend-mode|aynyyynyyn|p:mix-blend-mode|mix-blend-mode
css-modern-color|nynnnnnnnu|f:lch f:oklch f:lab f:oklab|lch(), oklch(), lab(), oklab()
css-object-fit|aynyyynyyn|p:object-fit|object-fit
css-object-position|aynyyynyyn|p:object-position|object-position
css-opacity|yynyyyyyyn|p:opacity|opacity
css-orphans|nynyyynuyn|p:orphans|orphans
css-outline-offset|nynnnnnyyn|p:outline-offset|outline-offset
css-outline|yynyyyyyyy|p:outline|outline
css-overflow-wrap|nannnnnuyu|p:overflow-wrap|overflow-wrap
css-overflow|aanaaaayaa|p:overflow|overflow
css-padding-block-start-end|nannnnnuyn|p:padding-block-start p:padding-block-end|padding-block-start & padding-block-end
css-padding-inline-block|nannnnnunn|p:padding-inline p:padding-block|padding-inline & padding-block
css-padding-inline-start-end|nannnnnuyn|p:padding-inline-start p:padding-inline-end|padding-inline-start & padding-inline-end
css-position|nanaaaayay|p:position|position
css-pseudo-class-active|nnnaaayyny|s::active|:active
css-pseudo-class-checked|nynaaayyyn|s::checked|:checked
css-pseudo-class-default|nynyyayyun|s::default|:default
css-pseudo-class-first-child|nynayayyyy|s::first-child|:first-child
css-pseudo-class-first-of-type|nynayayyyn|s::first-of-type|:first-of-type
css-pseudo-class-focus-visible|nynaaayuyu|s::focus-visible|:focus-visible
css-pseudo-class-focus-within|nynaanyuyu|s::focus-within|:focus-within
css-pseudo-class-focus|nnnaaayyyy|s::focus|:focus
css-pseudo-class-has|nynnnnnnyn|s::has|:has()
css-pseudo-class-hover|aynaaayyyn|s::hover|:hover
css-pseudo-class-lang|nynnynnuyu|s::lang|lang()
css-pseudo-class-last-child|nynayayyyy|s::last-child|:last-child
css-pseudo-class-last-of-type|nynayayyyn|s::last-of-type|:last-of-type
css-pseudo-class-link|nyyayayyyy|s::link|:link
css-pseudo-class-not|nynnnnnyyn|s::not|:not
css-pseudo-class-nth-child|nynnnnnyyn|s::nth-child|:nth-child
css-pseudo-class-nth-last-child|nynnnnnyyn|s::nth-last-child|:nth-last-child
css-pseudo-class-nth-last-of-type|nynnnnnyyn|s::nth-last-of-type|:nth-last-of-type
css-pseudo-class-nth-of-type|nynnnnnyyn|s::nth-of-type|:nth-of-type
css-pseudo-class-only-child|nynayayyyy|s::only-child|:only-child
css-pseudo-class-only-of-type|nynayayyyy|s::only-of-type|:only-of-type
css-pseudo-class-target|nnnayayyyy|s::target|:target
css-pseudo-class-visited|nnnayayyny|s::visited|:visited
css-pseudo-element-after|nynaaanyyn|s:::after|::after
css-pseudo-element-before|nynaaanyyn|s:::before|::before
css-pseudo-element-first-letter|nynaaayyyy|s:::first-letter|::first-letter
css-pseudo-element-first-line|nynaaayyyy|s:::first-line|::first-line
css-pseudo-element-marker|nynnnnyyyu|s:::marker|::marker
css-pseudo-element-placeholder|nynaaayyyn|s:::placeholder|::placeholder
css-radial-gradient|aynnnnnyyn|f:radial-gradient|radial-gradient()
css-resize|nannnnnuyn|p:resize|resize
css-rgba|aynyyyayyn|f:rgba|rgba()
css-scroll-snap|nynnnnnyyu|p:scroll-snap-type p:scroll-snap-align|scroll-snap
css-shape-margin|nynynnnyyu|p:shape-margin|shape-margin
css-shape-outside|nynynnnyyu|p:shape-outside|shape-outside
css-tab-size|nynyaynuyn|p:tab-size|tab-size
css-table-layout|yynnyyyuyu|p:table-layout|table-layout
css-text-align-last|yynnnnnuyu|p:text-align-last|text-align-last
css-text-decoration-color|aynyyyyyyn|p:text-decoration-color|text-decoration-color
css-text-decoration-line|yynyyyyyyn|p:text-decoration-line|text-decoration-line
css-text-decoration-skip-ink|nynnnnnyyn|p:text-decoration-skip-ink|text-decoration-skip-ink
css-text-decoration-style|yynyyyyyyn|p:text-decoration-style|text-decoration-style
css-text-decoration-thickness|nynnnnnynn|p:text-decoration-thickness|text-decoration-thickness
css-text-emphasis-position|nynynnnunn|p:text-emphasis-position|text-emphasis-position
css-text-emphasis|aynyaynunn|p:text-emphasis|text-emphasis
css-text-justify|anannaauna|p:text-justify|text-justify
css-text-orientation|yynyyynyyn|p:text-orientation|text-orientation
css-text-overflow|aynyyynynn|p:text-overflow|text-overflow
css-text-shadow|nynnnnyyyy|p:text-shadow|text-shadow
css-text-underline-offset|nynnnnnyyn|p:text-underline-offset|text-underline-offset
css-text-underline-position|aannaynyyn|p:text-underline-position|text-underline-position
css-text-wrap|nynnnnnuyn|p:text-wrap|text-wrap
css-transform|nynnnnnyyn|p:transform|transform
css-transition|nynnnnayau|p:transition|transition
css-unit-calc|aynnnnnyyn|f:calc|CSS calc() function
css-unit-ch|yynyyynyyn|u:ch|ch unit
css-unit-rem|yynyyynyyn|u:rem|rem unit
css-unit-vh|yanyyyyyyn|u:vh|vh unit
css-unit-vmax|yynyyynyyn|u:vmax|vmax unit
css-unit-vmin|yynyyynyyn|u:vmin|vmin unit
css-unit-vw|yynyyyyyyn|u:vw|vw unit
css-user-select|nannnnnuyn|p:user-select|user-select
css-variables|nynnnnnyyn|f:var|CSS Variables (Custom Properties)
css-visibility|nynyyyyyyy|p:visibility|visibility
css-white-space-collapse|nynnnnnuyu|p:white-space-collapse|white-space-collapse
css-white-space|aynyyyayny|p:white-space|white-space
css-widows|nynyyynuyn|p:widows|widows
css-word-break|aayaaanyan|p:word-break|word-break
css-word-spacing|yynyyyayya|p:word-spacing|word-spacing
css-word-wrap|aynuayyuuu|p:word-wrap|word-wrap
css-writing-mode|aynyyynyyn|p:writing-mode|writing-mode
css-z-index|nynyyyyyyy|p:z-index|z-index
html-abbr|yynyyynyyy|e:abbr|<abbr> element
html-acronym|yynyyynyyy|e:acronym|<acronym> element
html-audio|nynnnnnyyn|e:audio|<audio> element
html-base|ayyaaaayyn|e:base|<base>
html-bdi|nynnnnnyyn|e:bdi|<bdi> element
html-dialog|aynnnnnyyn|e:dialog|<dialog> element
html-form|aynayaayyn|e:form|<form> element
html-hidden|nynnnnnyyn|a:hidden|hidden attribute
html-link|nyynnnnnnn|e:link|<link> element
html-loading-attribute|nynnnnnyyn|a:loading|loading attribute
html-marquee|nynayaayyn|e:marquee|<marquee> element
html-meter|aynyyynyyn|e:meter|<meter> element
html-object|nannnnnaan|e:object|<object> element
html-picture|nannnnnyyn|e:picture|<picture> element
html-popover|nynnnnnnau|a:popover|popover attribute
html-progress|aynnnnnyyn|e:progress|<progress> element
html-required|aynnynnyyn|a:required|required attribute
html-rp|aynyyyyyyn|e:rp|<rp> element
html-rt|aynyyyyyyn|e:rt|<rt> element
html-ruby|aynyyyyyyn|e:ruby|<ruby> element
html-select|aanyyyaayn|e:select|<select> element
html-semantics|aynaaanyyn|e:article e:aside e:details e:figcaption e:figure e:footer e:header e:main e:mark e:nav e:section e:summary e:time|HTML5 semantics
html-srcset|nynnnnnyyn|a:srcset a:sizes|srcset and sizes attributes
html-style|ayayyyyyyn|e:style|<style> element
html-svg|nannnnnyyn|e:svg|Embedded <svg> image
html-target|naaaannaan|a:target|target attribute
html-textarea|yynyayaann|e:textarea|<textarea> element
html-video|nanynnnyan|e:video|<video> element
html-wbr|aynyyyyyyn|e:wbr|<wbr> element
image-apng|aynyayyyyy|i:apng|Animated PNG image format
image-avif|aynyyyyyyn|i:avif|AVIF image format
image-base64|nyayyyyyya|i:data|Base 64 image format
image-heif|aynyanannn|i:heic i:heif|HEIF image format
image-mp4|nynnayannn|i:mp4|Video as Image Assets
image-tiff|aynyanannn|i:tif i:tiff|TIFF image format
image-webp|aynyyyyyyy|i:webp|webP image format
`
