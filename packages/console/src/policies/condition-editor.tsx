/**
 * An editor for conditions, with completion, colours and faults from the policy package, in the browser. It is in a
 * shadow tree, where styles are style sheets of the tree. The Content-Security-Policy allows these, but not a style
 * element.
 */
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { linter, type Diagnostic } from '@codemirror/lint'
import { Annotation, EditorState, RangeSetBuilder } from '@codemirror/state'
import {
  Decoration,
  drawSelection,
  EditorView,
  keymap,
  tooltips,
  ViewPlugin,
  type DecorationSet,
  type ViewUpdate,
} from '@codemirror/view'
import { useEffect, useRef } from 'react'
import { compileCondition } from '@tacho/policy/compile.ts'
import { readToken } from '@tacho/policy/language/tokens.ts'
import { completeWith, type Recorded } from './completion.ts'

interface Props {
  value: string
  onChange: (text: string) => void
  readOnly: boolean
  recorded: Recorded
}

/** Marks a change that did not come from the keyboard. */
const fromOutside = Annotation.define<true>()

export function ConditionEditor({ value, onChange, readOnly, recorded }: Props) {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(null)
  const changed = useRef(onChange)
  /** Typed texts that have not returned as `value`, because typing can be faster than rendering. */
  const typed = useRef<string[]>([])
  useEffect(() => {
    changed.current = onChange
  })
  useEffect(() => {
    if (!host.current) return
    const tree = host.current.shadowRoot ?? host.current.attachShadow({ mode: 'open' })
    const editor = new EditorView({
      parent: tree,
      root: tree,
      state: EditorState.create({
        doc: value,
        extensions: [
          history(),
          drawSelection(),
          closeBrackets(),
          EditorView.lineWrapping,
          EditorState.readOnly.of(readOnly),
          EditorView.editable.of(!readOnly),
          EditorView.contentAttributes.of({ 'aria-label': 'Condition', spellcheck: 'false', autocapitalize: 'off' }),
          tooltips({ position: 'absolute' }),
          autocompletion({ override: [completeWith(recorded)], icons: false }),
          linter(({ state }) => diagnosticsOf(state.doc.toString()), { delay: 150 }),
          colours,
          EDITOR_THEME,
          // Tab leaves the editor, as it leaves every field.
          keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap]),
          EditorView.updateListener.of((update) => {
            if (!update.docChanged || update.transactions.some((one) => one.annotation(fromOutside))) return
            const text = update.state.doc.toString()
            typed.current.push(text)
            changed.current(text)
          }),
        ],
      }),
    })
    view.current = editor
    return () => editor.destroy()
    // The editor owns its text once it exists. The code below applies a later value.
  }, [readOnly, recorded])
  useEffect(() => {
    const editor = view.current
    const typedAt = typed.current.lastIndexOf(value)
    typed.current.splice(0, typedAt + 1)
    if (!editor || typedAt >= 0 || editor.state.doc.toString() === value) return
    const changes = { from: 0, to: editor.state.doc.length, insert: value }
    editor.dispatch({ changes, annotations: fromOutside.of(true) })
  }, [value])
  return <div ref={host} data-editor="condition" />
}

function diagnosticsOf(text: string): Diagnostic[] {
  if (text.trim() === '') return []
  const compiled = compileCondition(text)
  if (compiled.ok) return []
  return compiled.faults.map(({ message, position: { offset, endOffset } }) => {
    const from = Math.min(offset, Math.max(0, text.length - 1))
    return { from, to: Math.max(from + 1, endOffset ?? from + 1), severity: 'error', message }
  })
}

const MARKS = {
  literal: Decoration.mark({ class: 'tok-literal' }),
  number: Decoration.mark({ class: 'tok-number' }),
  name: Decoration.mark({ class: 'tok-name' }),
  symbol: Decoration.mark({ class: 'tok-symbol' }),
}

function marksOf(text: string): DecorationSet {
  const marks = new RangeSetBuilder<Decoration>()
  try {
    for (let offset = 0; ;) {
      const token = readToken(text, offset)
      if (token.kind === 'end') break
      const isText = token.kind === 'literal' && typeof token.value === 'string'
      const mark = isText
        ? MARKS.literal
        : token.kind === 'literal' || token.kind === 'int'
          ? MARKS.number
          : token.kind === 'symbol'
            ? MARKS.symbol
            : MARKS.name
      marks.add(token.start, token.end, mark)
      offset = token.end
    }
  } catch {
    // A text that is no token has no colour; the linter reports it.
  }
  return marks.finish()
}

const colours = ViewPlugin.fromClass(
  class {
    decorations: DecorationSet
    constructor(view: EditorView) {
      this.decorations = marksOf(view.state.doc.toString())
    }
    update(update: ViewUpdate) {
      if (update.docChanged) this.decorations = marksOf(update.state.doc.toString())
    }
  },
  { decorations: (plugin) => plugin.decorations },
)

/** Design tokens of the page also apply in the editor's tree, because CSS variables are inherited. */

const EDITOR_THEME = EditorView.theme({
  '&': {
    backgroundColor: 'var(--color-raised)',
    color: 'var(--color-ink)',
    border: '1px solid var(--color-edge)',
    borderRadius: '0.375rem',
    fontSize: '0.8125rem',
  },
  '&.cm-focused': { outline: '2px solid var(--color-accent)', outlineOffset: '1px' },
  '.cm-scroller': { fontFamily: 'var(--font-mono)', lineHeight: '1.5', maxHeight: '20rem' },
  '.cm-content': { minHeight: '6rem', padding: '0.5rem 0', caretColor: 'var(--color-ink)' },
  '.cm-cursor': { borderLeftColor: 'var(--color-ink)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    background: 'var(--color-accent-wash)',
  },
  '.tok-literal': { color: 'var(--color-green)' },
  '.tok-number': { color: 'var(--color-violet)' },
  '.tok-symbol': { color: 'var(--color-soft)' },
  '.cm-lintRange-error': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--color-red)',
    textUnderlineOffset: '3px',
  },
  '.cm-tooltip': {
    backgroundColor: 'var(--color-raised)',
    border: '1px solid var(--color-line)',
    borderRadius: '0.375rem',
    color: 'var(--color-ink)',
  },
  '.cm-diagnostic-error': { borderLeft: '3px solid var(--color-red)', padding: '0.25rem 0.5rem' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--font-mono)' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '0.125rem 0.5rem' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': {
    backgroundColor: 'var(--color-accent-fill)',
    color: 'var(--color-on-accent)',
  },
  '.cm-completionDetail': { fontStyle: 'normal', marginLeft: '1rem', opacity: '0.8' },
})
