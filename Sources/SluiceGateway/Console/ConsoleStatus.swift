import SluiceCore
import SluiceValues

/// The head of the page: the readiness and the identity of the gateway.
struct ConsoleStatus: Sendable {
    let app: String
    /// The start of the gateway, in monotonic nanoseconds.
    let began: UInt64
    let environment: any Environment
    let readiness: Readiness
    let generations: RuleGenerations

    /// The title, which a browser shows for a page in the background.
    var title: String { "\(readiness.current.isEmpty ? "Ready" : "NOT READY") – \(app) – Sluice" }

    func html(isStill: Bool) -> HTML {
        let problems = readiness.current.sorted { $0.key < $1.key }
        let parts = problems.map { part, error -> HTML in
            "<p class=\"bad\"><strong>Not ready: \(part).</strong></p>\n\(ConsoleError.paragraph(error))"
        }
        let up = ConsoleNumber.duration(Double(environment.monotonicNanoseconds() - began) / 1e9)
        let now = Timestamp(milliseconds: environment.wallMilliseconds()).iso8601
        return """
            <header>
            <h1>Sluice: \(app)</h1>
            <div id="status" role="status">
            \(problems.isEmpty ? ["<p class=\"good\"><strong>Ready.</strong></p>\n"] : parts)\
            </div>
            <p>This gateway has been up for \(up); it uses generation \(generations.number) of the rules. As of \(now).</p>
            <nav><p><a href="/console/why">Why does a user have an object, or not?</a> ·
            <a href="/console/explain">How is a subscription processed?</a> ·
            <a href="\(ConsolePending.path)">Pending users</a> ·
            <a href="/console/audit">Changes by operators</a> ·
            <a href="/console/logout">Log out</a> ·
            \(isStill ? Self.going : Self.stopping)</p></nav>
            </header>

            """
    }

    private static let stopping: HTML = "<a href=\"/console?still=1\">Stop refreshing</a>"
    private static let going: HTML = "<a href=\"/console\">Refresh automatically</a>"
}
