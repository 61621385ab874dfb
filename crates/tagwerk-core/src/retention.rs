//! Which jobs may be deleted by age. (Under construction.)
