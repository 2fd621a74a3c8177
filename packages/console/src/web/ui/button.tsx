import { createLink } from '@tanstack/react-router'
import type { ComponentProps } from 'react'

const LOOKS = {
  plain: 'border border-edge bg-raised text-ink hover:bg-hover',
  accent: 'bg-accent-fill text-on-accent hover:brightness-110',
  quiet: 'text-soft hover:bg-hover hover:text-ink',
} as const

interface ButtonProps extends ComponentProps<'button'> {
  look?: keyof typeof LOOKS
  /** Its act is under way. */
  busy?: boolean
}

export function Button({
  look = 'plain',
  busy = false,
  className = '',
  disabled,
  type = 'button',
  ...rest
}: ButtonProps) {
  return (
    <button
      type={type}
      disabled={disabled || busy}
      aria-busy={busy}
      className={`inline-flex h-8 items-center justify-center gap-1.5 rounded-md px-3 text-sm font-medium whitespace-nowrap disabled:opacity-60 ${LOOKS[look]} ${className}`}
      {...rest}
    />
  )
}

/** A link with the look of the main button. */
export const LinkButton = createLink((props: ComponentProps<'a'>) => (
  <a
    {...props}
    className={`inline-flex h-8 items-center rounded-md px-3 text-sm font-medium hover:brightness-110 ${LOOKS.accent}`}
  >
    {props.children}
  </a>
))
