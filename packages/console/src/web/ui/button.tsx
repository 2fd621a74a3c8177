import { createLink, getRouteApi } from '@tanstack/react-router'
import type { ComponentProps } from 'react'

const LOOKS = {
  plain: 'border border-edge bg-raised text-ink hover:bg-hover',
  accent: 'bg-accent-fill text-on-accent hover:brightness-110',
  /** For acts that cannot be undone. */
  danger: 'bg-red text-page hover:brightness-110',
  quiet: 'text-soft hover:bg-hover hover:text-ink',
} as const

interface ButtonProps extends ComponentProps<'button'> {
  look?: keyof typeof LOOKS
  /** Whether the act is under way. */
  busy?: boolean
}

export function Button({
  look = 'plain',
  busy = false,
  className = '',
  disabled,
  type = 'button',
  ...buttonProps
}: ButtonProps) {
  return (
    <button
      type={type}
      // Ignore a held Enter key: it would repeat the act, or press a button that appears in the same place.
      onKeyDown={(event) => event.repeat && event.key === 'Enter' && event.preventDefault()}
      disabled={disabled || busy}
      aria-busy={busy}
      className={`inline-flex h-8 items-center justify-center gap-1.5 rounded-md px-3 text-sm font-medium whitespace-nowrap disabled:opacity-60 ${LOOKS[look]} ${className}`}
      {...buttonProps}
    />
  )
}

/** A link that looks like the main button. */
export const LinkButton = createLink((props: ComponentProps<'a'>) => (
  <a
    {...props}
    className={`inline-flex h-8 items-center rounded-md px-3 text-sm font-medium hover:brightness-110 ${LOOKS.accent}`}
  >
    {props.children}
  </a>
))

interface MoreProps {
  list: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => Promise<unknown> }
  label?: string
}

/** A button that reads the next page of a list; absent on the last page. */
export function More({ list, label = 'Show more' }: MoreProps) {
  if (!list.hasNextPage) return null
  return (
    <div className="flex justify-center py-4">
      <Button busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
        {label}
      </Button>
    </div>
  )
}

const route = getRouteApi('/w/$workspace/$environment')

export function GetStartedLink() {
  const params = route.useParams()
  return (
    <LinkButton to="/w/$workspace/$environment/get-started" params={params}>
      Get started
    </LinkButton>
  )
}
