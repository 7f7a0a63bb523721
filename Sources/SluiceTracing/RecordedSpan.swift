import SluiceCore
import Synchronization
package import Tracing

/// A span that is recorded until it ends. Later changes have no effect.
package final class RecordedSpan: Span {
    private struct State {
        var name: String
        var attributes: SpanAttributes = [:]
        var left = 0
        var isError = false
        var hasEnded = false
    }

    /// The maximum number of attributes of a span.
    package static let attributes = 32
    /// The maximum length of a text of an attribute, and of a name.
    package static let characters = 200

    package let context: ServiceContext
    package let identity: SpanIdentity
    private let parent: UInt64?
    private let kind: FinishedSpan.Kind
    private let begin: UInt64
    private let queue: SpanQueue
    private let state: Mutex<State>

    init(
        name: String, context: ServiceContext, identity: SpanIdentity, parent: UInt64?, kind: FinishedSpan.Kind, begin: UInt64,
        queue: SpanQueue
    ) {
        self.context = context
        self.identity = identity
        self.parent = parent
        self.kind = kind
        self.begin = begin
        self.queue = queue
        state = Mutex(State(name: name))
    }

    package var operationName: String {
        get { state.withLock { $0.name } }
        set { state.withLock { $0.name = newValue } }
    }

    package var attributes: SpanAttributes {
        get { state.withLock { $0.attributes } }
        set { state.withLock { $0.attributes = newValue } }
    }

    package var isRecording: Bool { identity.isSampled && state.withLock { !$0.hasEnded } }

    package func setStatus(_ status: SpanStatus) {
        state.withLock { $0.isError = status.code == .error }
    }

    package func addEvent(_ event: SpanEvent) { state.withLock { $0.left += 1 } }
    package func addLink(_ link: SpanLink) { state.withLock { $0.left += 1 } }

    /// Records the code of an error of Sluice, and the type of any other.
    package func recordError<Instant: TracerInstant>(
        _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
    ) {
        let name = (error as? SluiceError)?.code.name ?? "\(type(of: error))"
        state.withLock { state in
            state.attributes["error.type"] = SpanAttribute.string(name)
            state.left += attributes.count
        }
    }

    package func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
        let end = instant().nanosecondsSinceEpoch
        let finished = state.withLock { state -> FinishedSpan? in
            guard !state.hasEnded else { return nil }
            state.hasEnded = true
            return identity.isSampled ? finish(state, end) : nil
        }
        if let finished { queue.append(finished) }
    }

    private func finish(_ state: State, _ end: UInt64) -> FinishedSpan {
        var (kept, left): ([String: FinishedSpan.Attribute], Int) = ([:], state.left)
        state.attributes.forEach { key, attribute in
            if kept.count < Self.attributes, key.utf8.count <= Self.characters, let value = FinishedSpan.Attribute(attribute) {
                kept[key] = value
            } else {
                left += 1
            }
        }
        return FinishedSpan(
            name: String(state.name.prefix(Self.characters)), identity: identity, parent: parent, kind: kind,
            time: begin...max(begin, end), attributes: kept, left: left, isError: state.isError)
    }

    /// Runs `body` in the context of the span, and ends the span. An error of `body` is recorded.
    package nonisolated(nonsending) func within<Outcome>(
        _ body: nonisolated(nonsending) () async throws -> Outcome
    ) async throws -> Outcome {
        defer { end() }
        do {
            return try await ServiceContext.$current.withValue(context, operation: body)
        } catch {
            recordError(error)
            setStatus(SpanStatus(code: .error))
            throw error
        }
    }
}

extension FinishedSpan.Attribute {
    /// Creates a value from a scalar attribute. Lists are not kept.
    fileprivate init?(_ attribute: SpanAttribute) {
        switch attribute {
        case .int32(let number): self = .number(Int64(number))
        case .int64(let number): self = .number(number)
        case .double(let number) where number.isFinite: self = .fraction(number)
        case .bool(let flag): self = .flag(flag)
        case .string(let text): self = .text(String(text.prefix(RecordedSpan.characters)))
        default: return nil
        }
    }
}
