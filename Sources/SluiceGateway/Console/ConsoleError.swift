import Hummingbird
import SluiceCore

/// The form of errors in the console.
enum ConsoleError {
    /// Returns the error to show; nil for a cancellation.
    static func shown(_ error: any Error) -> SluiceError? {
        switch error {
        case let error as HTTPError: SluiceError(.badRequest, error.body ?? "The request is not well formed.")
        case is CancellationError: nil
        default: SluiceError(error, otherwise: .internalError, "The page could not be built.")
        }
    }

    static func paragraph(_ error: SluiceError) -> HTML {
        """
        <p class="bad"><strong>\(error.operatorText)</strong> <code>\(error.code.name)</code> (\(error.code.rawValue)). \
        What to do: \(error.fix ?? error.code.fix)</p>

        """
    }
}
