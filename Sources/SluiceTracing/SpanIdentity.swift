package import Tracing

/// The identity of a span, as W3C Trace Context has it: 16 bytes for the trace and 8 for the span. Neither is zero.
package struct SpanIdentity: Hashable, Sendable {
    package struct Trace: Hashable, Sendable {
        var high: UInt64
        var low: UInt64

        /// 32 hexadecimal digits.
        package var text: String { hex(high) + hex(low) }
    }

    package var trace: Trace
    package var span: UInt64
    /// `true` if the trace is recorded. The sender of a request decides it for its trace.
    package var isSampled = true

    /// 16 hexadecimal digits.
    package var spanText: String { hex(span) }
}

// MARK: traceparent

extension SpanIdentity {
    /// The header of W3C Trace Context.
    package static let header = "traceparent"

    /// Parses a `traceparent`: version, trace, span and flags in hexadecimal digits, with a hyphen between them. A version after 00 may
    /// have further fields.
    ///
    /// - Returns: nil for text of another form, and for the version `ff` and zeros, which are not valid.
    package init?(traceparent: String) {
        let fields = traceparent.utf8.prefix(128).split(separator: UInt8(ascii: "-"), maxSplits: 4, omittingEmptySubsequences: false)
        guard fields.count >= 4, let version = number(fields[0], digits: 2), version != 0xff, version > 0 || fields.count == 4,
            fields[1].count == 32, let high = number(fields[1].prefix(16), digits: 16), let low = number(fields[1].suffix(16), digits: 16),
            high != 0 || low != 0, let span = number(fields[2], digits: 16), span != 0, let flags = number(fields[3], digits: 2)
        else { return nil }
        self.init(trace: Trace(high: high, low: low), span: span, isSampled: flags & 1 == 1)
    }

    package var traceparent: String { "00-\(trace.text)-\(spanText)-\(isSampled ? "01" : "00")" }
}

/// Parses lower-case hexadecimal digits, the only ones that the header may have.
private func number(_ text: Substring.UTF8View, digits: Int) -> UInt64? {
    guard text.count == digits else { return nil }
    var number: UInt64 = 0
    for byte in text {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): number = number << 4 | UInt64(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): number = number << 4 | UInt64(byte - UInt8(ascii: "a") + 10)
        default: return nil
        }
    }
    return number
}

private func hex(_ number: UInt64) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
}

// MARK: Identities from facts

extension SpanIdentity {
    /// The identity of the span of an upload, from facts that every gateway knows.
    ///
    /// A changeset passes PostgreSQL and the change log, which carry its client and number. The gateways that publish and deliver it
    /// compute the same identity, so that no trace has to travel with the data.
    package static func upload(app: String, client: UInt64, changeset: UInt64) -> SpanIdentity {
        // FNV-1a over the app's name, then the finalizer of SplitMix64 for each part. `Hasher` has another seed in each process.
        var seed: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in app.utf8 { seed = (seed ^ UInt64(byte)) &* 0x100_0000_01b3 }
        let high = mixed(seed ^ mixed(client))
        let low = mixed(high ^ mixed(changeset))
        return SpanIdentity(trace: Trace(high: high | 1, low: low), span: mixed(low ^ seed) | 1)
    }

    private static func mixed(_ number: UInt64) -> UInt64 {
        var number = number &+ 0x9e37_79b9_7f4a_7c15
        number = (number ^ number >> 30) &* 0xbf58_476d_1ce4_e5b9
        number = (number ^ number >> 27) &* 0x94d0_49bb_1331_11eb
        return number ^ number >> 31
    }
}

// MARK: In the context of a task

extension ServiceContext {
    private enum Span: ServiceContextKey { typealias Value = SpanIdentity }
    private enum Planned: ServiceContextKey { typealias Value = SpanIdentity }

    /// The span that new spans are children of.
    package var span: SpanIdentity? {
        get { self[Span.self] }
        set { self[Span.self] = newValue }
    }

    /// The identity of the next span, which is the first of its trace; nil for a random one.
    package var planned: SpanIdentity? {
        get { self[Planned.self] }
        set { self[Planned.self] = newValue }
    }

    /// Returns a context in which new spans are children of `span`.
    package static func child(of span: SpanIdentity) -> ServiceContext {
        var context = ServiceContext.topLevel
        context.span = span
        return context
    }

    /// Returns a context in which the next span has the identity `span`.
    package static func root(_ span: SpanIdentity) -> ServiceContext {
        var context = ServiceContext.topLevel
        context.planned = span
        return context
    }
}
