import Hummingbird
import SluiceCore
import SluiceNet
import SluicePostgres

/// The form of errors in the console.
enum ConsoleError {
    /// Returns the error to show; nil for a cancellation.
    static func shown(_ error: any Error) -> SluiceError? {
        switch PostgresError.forPort(error) {
        case let error as SluiceError: error
        case let error as ErrorResponse: error.error
        case let error as HTTPError: SluiceError(.badRequest, error.body ?? "The request is not well formed.")
        case is CancellationError: nil
        case let error: SluiceError(.internalError, "\(error)")
        }
    }

    static func paragraph(_ error: SluiceError) -> HTML {
        """
        <p class="bad"><strong>\(error.operatorText)</strong> <code>\(error.code.name)</code> (\(error.code.rawValue)). \
        What to do: \(error.fix ?? error.code.fix)</p>

        """
    }
}
