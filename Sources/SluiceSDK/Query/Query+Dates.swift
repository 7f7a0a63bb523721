public import Foundation

extension Date: _QueryOrdered {}
extension UUID: _QueryOrdered {}
