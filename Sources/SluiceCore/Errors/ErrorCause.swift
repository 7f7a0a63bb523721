/// The error underneath a `SluiceError`, with the code of the area that it comes from.
///
/// Operators read it in logs, at the admin port, in `sluice why` and beside stored rejections. It never reaches a client, because the text
/// of a database, broker, plugin or library may quote rows, hosts and statements.
package indirect enum ErrorCause: Hashable, Sendable {
    /// An error of another part.
    case error(SluiceError)
    /// An error of PostgreSQL; without a state if it is libpq's.
    case postgres(sqlState: String?, text: String)
    /// An error of a broker or of librdkafka, with librdkafka's number.
    case kafka(code: Int32, text: String)
    /// An error of SQLite, with its extended result code.
    case sqlite(code: Int32, text: String)
    /// The failure of a system call.
    case system(errno: Int32, text: String)
    /// The end of a plugin's process, or the reason that a plugin gives.
    case plugin(String)
    /// The text of a library without codes, or of an error of another type.
    case text(String)

    /// Returns the cause for any error. An error of an area becomes its `SluiceError`.
    package init(_ error: any Error) {
        if let error = SluiceError(of: error) { self = .error(error) } else { self = .text(String(describing: error)) }
    }

    /// The causes from this one to the first, one text each.
    package var chain: [String] {
        switch self {
        case .error(let error): ["\(error.code.name) (\(error.code.rawValue)): \(error.messageWithValue)"] + (error.cause?.chain ?? [])
        case .postgres(let state, let text): ["PostgreSQL: \(text)" + (state.map { " (SQLSTATE \($0))" } ?? "")]
        case .kafka(let code, let text): ["Kafka: \(text) (error \(code))"]
        case .sqlite(let code, let text): ["SQLite: \(text) (error \(code))"]
        case .system(let errno, let text): ["\(text) (errno \(errno))"]
        case .plugin(let text), .text(let text): [text]
        }
    }
}

extension ErrorCause: CustomStringConvertible {
    package var description: String { chain.joined(separator: " Cause: ") }
}

/// An error type of an area that has more than a `SluiceError` says, and converts to one at the area's edge.
package protocol SluiceErrorConvertible: Error {
    var asSluiceError: SluiceError { get }
}

extension SluiceError: SluiceErrorConvertible {
    package var asSluiceError: SluiceError { self }

    /// The error itself, or that of an area's type; nil for errors of other types.
    package init?(of error: any Error) {
        guard let error = error as? any SluiceErrorConvertible else { return nil }
        self = error.asSluiceError
    }

    /// The error itself, or that of an area's type. An error of any other type becomes the cause of a new one.
    package init(_ error: any Error, otherwise code: ErrorCode, _ message: String, fix: String? = nil) {
        self = SluiceError(of: error) ?? SluiceError(code, message, fix: fix, cause: .text(String(describing: error)))
    }
}
