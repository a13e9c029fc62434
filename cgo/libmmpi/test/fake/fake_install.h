/* The functions by which fake_begin fills the tables: each file of the fake adds its own
 * functions. */
#ifndef ZIPPER_FAKE_INSTALL_H
#define ZIPPER_FAKE_INSTALL_H
#include "fake.h"

#define FAKE(NAME) real.NAME = NAME
void fake_install_requests(void);
void fake_install_types(void);
void fake_install_engine(void);
#endif
