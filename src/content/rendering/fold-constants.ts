/**
 * Evaluates what is the same for every recipient: workspace tags become text, and conditions on constants become their chosen branch. The
 * result renders the same as the original template. Pure. Never throws.
 */
import type {
  Expression,
  Lookup,
  MergeNode,
  MergePlace,
  MergeTemplate,
  Operand,
} from '../merge/merge-tree.js'
import { renderTemplate } from '../merge/render-template.js'

/** @param constants system tags by name */
export function foldConstants(
  template: MergeTemplate,
  constants: Readonly<Record<string, string>>,
): MergeTemplate {
  return { ...template, nodes: new Folding(template.place, constants).fold(template.nodes) }
}

class Folding {
  private readonly place: MergePlace
  private readonly constants: Readonly<Record<string, string>>

  constructor(place: MergePlace, constants: Readonly<Record<string, string>>) {
    this.place = place
    this.constants = constants
  }

  fold(nodes: readonly MergeNode[]): MergeNode[] {
    const folded: MergeNode[] = []
    for (const node of nodes.flatMap(one => this.foldNode(one))) {
      const last = folded.at(-1)
      if (typeof node === 'string' && typeof last === 'string') folded[folded.length - 1] = last + node
      else if (node !== '') folded.push(node)
    }
    return folded
  }

  private foldNode(node: MergeNode): readonly MergeNode[] {
    if (typeof node === 'string') return [node]
    switch (node.kind) {
      case 'link':
      case 'pixel':
        return [node]
      case 'value':
        return [this.isKnown(node.lookup) ? this.render([node]) : node]
      case 'url': {
        const parts = this.fold(node.parts)
        const isFixed = parts.every(part => typeof part === 'string')
        return [isFixed ? this.render([{ ...node, parts }]) : { ...node, parts }]
      }
      case 'loop':
        return [{ ...node, body: this.fold(node.body), whenEmpty: this.fold(node.whenEmpty) }]
      case 'choice': {
        const { expression, whenTrue, whenFalse } = node
        if (!this.isConstant(expression))
          return [{ ...node, whenTrue: this.fold(whenTrue), whenFalse: this.fold(whenFalse) }]
        const holds = this.render([{ ...node, whenTrue: ['x'], whenFalse: [] }]) === 'x'
        return this.fold(holds ? whenTrue : whenFalse)
      }
    }
  }

  private isKnown(lookup: Lookup): boolean {
    return lookup.of === 'root' && Object.hasOwn(this.constants, lookup.name)
  }

  private isConstant({ left, right }: Expression): boolean {
    return this.isFixed(left) && (right === undefined || this.isFixed(right.operand))
  }

  private isFixed(operand: Operand): boolean {
    return 'literal' in operand || this.isKnown(operand.lookup)
  }

  private render(nodes: readonly MergeNode[]): string {
    return renderTemplate({ place: this.place, nodes, names: [] }, { system: this.constants })
  }
}
